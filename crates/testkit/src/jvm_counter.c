/* Counts the entries and exits of methods by JVMTI's own events (MethodEntry, MethodExit): a second opinion on what an agent
   that rewrites bytecode says of the same run. Everything runs interpreted meanwhile.

   Options: out=FILE;prefix=NAME[:NAME...]   NAME: the beginning of a class's internal name (shop/Main); without any, all.
   Native methods are left out: they have no bytecode. At the end of the machine FILE is written, a line for each method:

       class TAB name TAB descriptor TAB entries TAB exits TAB exits by an exception

   and at last "end TAB calls", by which a reader knows that it is whole. "full" instead: there were too many methods. */

#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (1u << 20)
#define PREFIXES 32
/* can_support_virtual_threads of JDK 21, which older headers do not name: the 45th bit of jvmtiCapabilities. */
#define VIRTUAL_THREADS 44

typedef struct {
    char *class_name, *name, *descriptor;
    atomic_ullong entries, exits, thrown;
} Counted;

typedef struct {
    _Atomic(jmethodID) id;
    /* NULL: not counted. */
    Counted *counted;
} Slot;

static jvmtiEnv *jvmti;
static Slot *slots;
static unsigned used;
static atomic_int full;
static pthread_mutex_t inserting = PTHREAD_MUTEX_INITIALIZER;
static char *out_path, *prefixes[PREFIXES];
static int prefix_count;

static int wanted(const char *class_name) {
    for (int i = 0; i < prefix_count; i++)
        if (!strncmp(class_name, prefixes[i], strlen(prefixes[i]))) return 1;
    return !prefix_count;
}

/* What is counted of a method that is seen for the first time. */
static Counted *judge(jmethodID method) {
    jclass class_;
    jboolean native = JNI_FALSE;
    char *signature = NULL, *name = NULL, *descriptor = NULL;
    Counted *counted = NULL;
    if ((*jvmti)->IsMethodNative(jvmti, method, &native) || native) return NULL;
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class_)) return NULL;
    if ((*jvmti)->GetClassSignature(jvmti, class_, &signature, NULL)) return NULL;
    /* Lshop/Main; */
    size_t length = strlen(signature);
    if (length > 2 && wanted(signature + 1) && !(*jvmti)->GetMethodName(jvmti, method, &name, &descriptor, NULL)) {
        counted = calloc(1, sizeof *counted);
        counted->class_name = strndup(signature + 1, length - 2);
        counted->name = strdup(name);
        counted->descriptor = strdup(descriptor);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)name);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)descriptor);
    }
    (*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    return counted;
}

static Counted *counted_of(jmethodID method) {
    unsigned long long hash = (unsigned long long)(size_t)method * 0x9E3779B97F4A7C15ull;
    unsigned at = (unsigned)(hash >> 44);
    for (unsigned i = at;; i = (i + 1) % SLOTS) {
        jmethodID id = atomic_load_explicit(&slots[i].id, memory_order_acquire);
        if (id == method) return slots[i].counted;
        if (!id) break;
    }
    pthread_mutex_lock(&inserting);
    Counted *counted = NULL;
    for (unsigned i = at;; i = (i + 1) % SLOTS) {
        jmethodID id = atomic_load_explicit(&slots[i].id, memory_order_relaxed);
        if (id == method) {
            counted = slots[i].counted;
            break;
        }
        if (!id) {
            if (used == SLOTS / 2) {
                atomic_store(&full, 1);
                break;
            }
            used++;
            slots[i].counted = counted = judge(method);
            atomic_store_explicit(&slots[i].id, method, memory_order_release);
            break;
        }
    }
    pthread_mutex_unlock(&inserting);
    return counted;
}

static void JNICALL on_entry(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method) {
    (void)env, (void)jni, (void)thread;
    Counted *counted = counted_of(method);
    if (counted) atomic_fetch_add_explicit(&counted->entries, 1, memory_order_relaxed);
}

static void JNICALL on_exit_(jvmtiEnv *env, JNIEnv *jni, jthread thread, jmethodID method, jboolean thrown, jvalue value) {
    (void)env, (void)jni, (void)thread, (void)value;
    Counted *counted = counted_of(method);
    if (!counted) return;
    atomic_fetch_add_explicit(&counted->exits, 1, memory_order_relaxed);
    if (thrown) atomic_fetch_add_explicit(&counted->thrown, 1, memory_order_relaxed);
}

static void JNICALL on_init(jvmtiEnv *env, JNIEnv *jni, jthread thread) {
    (void)jni, (void)thread;
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, JVMTI_EVENT_METHOD_EXIT, NULL);
}

static void JNICALL on_death(jvmtiEnv *env, JNIEnv *jni) {
    (void)jni;
    (*env)->SetEventNotificationMode(env, JVMTI_DISABLE, JVMTI_EVENT_METHOD_ENTRY, NULL);
    (*env)->SetEventNotificationMode(env, JVMTI_DISABLE, JVMTI_EVENT_METHOD_EXIT, NULL);
    FILE *out = fopen(out_path, "w");
    if (!out) return;
    unsigned long long calls = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        Counted *c = atomic_load(&slots[i].id) ? slots[i].counted : NULL;
        if (!c) continue;
        fprintf(out, "%s\t%s\t%s\t%llu\t%llu\t%llu\n", c->class_name, c->name, c->descriptor,
                (unsigned long long)c->entries, (unsigned long long)c->exits, (unsigned long long)c->thrown);
        calls += c->entries;
    }
    fprintf(out, "%s\t%llu\n", atomic_load(&full) ? "full" : "end", calls);
    fclose(out);
}

static void parse(const char *options) {
    char *copy = strdup(options ? options : ""), *rest;
    for (char *part = strtok_r(copy, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        if (!strncmp(part, "out=", 4)) out_path = part + 4;
        if (!strncmp(part, "prefix=", 7)) {
            char *inner;
            for (char *p = strtok_r(part + 7, ":", &inner); p && prefix_count < PREFIXES; p = strtok_r(NULL, ":", &inner))
                prefixes[prefix_count++] = p;
        }
    }
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    (void)reserved;
    parse(options);
    slots = calloc(SLOTS, sizeof *slots);
    if (!out_path || !slots || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2)) {
        fprintf(stderr, "jvm_counter: no out=FILE, no memory, or no JVMTI\n");
        return 1;
    }
    jvmtiCapabilities possible, needed;
    memset(&needed, 0, sizeof needed);
    (*jvmti)->GetPotentialCapabilities(jvmti, &possible);
    needed.can_generate_method_entry_events = 1;
    needed.can_generate_method_exit_events = 1;
    unsigned char *bits = (unsigned char *)&needed, *may = (unsigned char *)&possible;
    bits[VIRTUAL_THREADS / 8] |= may[VIRTUAL_THREADS / 8] & (1 << VIRTUAL_THREADS % 8);
    if ((*jvmti)->AddCapabilities(jvmti, &needed)) {
        fprintf(stderr, "jvm_counter: this machine has no method events\n");
        return 1;
    }
    jvmtiEventCallbacks callbacks;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.VMInit = on_init;
    callbacks.VMDeath = on_death;
    callbacks.MethodEntry = on_entry;
    callbacks.MethodExit = on_exit_;
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_INIT, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_VM_DEATH, NULL);
    return 0;
}
