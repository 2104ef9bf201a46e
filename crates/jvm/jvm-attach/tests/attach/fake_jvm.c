/* A JVM as far as the attach protocol goes, for what a real one does not do. fake_jvm MODE FILE: maps FILE (a libjvm.so),
   says "ready", and lives until it is killed. MODE: deaf (SIGQUIT is left alone), ignores, or what it does once it has been
   asked to listen: never (does not), answers, silent, endless, trickle, garbage, closes. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void on_quit(int signal) {
    (void)signal;
    asked = 1;
}

static void serve(int client, const char *mode) {
    char buffer[65536];
    struct timespec pause = {0, 100000000};
    if (!strcmp(mode, "closes")) return;
    if (!strcmp(mode, "silent")) {
        /* Until the client gives up. */
        while (read(client, buffer, sizeof buffer) > 0) {}
        return;
    }
    int zeros = 0;
    while (zeros < 5) {
        ssize_t n = read(client, buffer, sizeof buffer);
        if (n <= 0) return;
        for (ssize_t i = 0; i < n; i++) zeros += !buffer[i];
    }
    if (!strcmp(mode, "answers")) dprintf(client, "0\nreturn code: 0\n");
    if (!strcmp(mode, "garbage")) dprintf(client, "HTTP/1.1 400 Bad Request\r\n\r\n");
    if (!strcmp(mode, "endless") || !strcmp(mode, "trickle")) {
        int slow = !strcmp(mode, "trickle");
        memset(buffer, 'x', sizeof buffer);
        if (write(client, "0\n", 2) != 2) return;
        while (write(client, buffer, slow ? 1 : sizeof buffer) > 0)
            if (slow) nanosleep(&pause, NULL);
    }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    const char *mode = words[1];
    int file = open(words[2], O_RDONLY);
    if (file < 0 || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) return 3;
    signal(SIGPIPE, SIG_IGN);
    if (!strcmp(mode, "ignores")) signal(SIGQUIT, SIG_IGN);
    else if (strcmp(mode, "deaf")) signal(SIGQUIT, on_quit);
    puts("ready");
    fflush(stdout);
    struct timespec pause = {0, 5000000};
    while (!asked) nanosleep(&pause, NULL);
    struct stat seen;
    char trigger[64];
    snprintf(trigger, sizeof trigger, ".attach_pid%d", getpid());
    char in_temp[80];
    snprintf(in_temp, sizeof in_temp, "/tmp/%s", trigger);
    printf("trigger %d\n", !stat(trigger, &seen) || !lstat(in_temp, &seen));
    fflush(stdout);
    while (!strcmp(mode, "never")) pause.tv_sec = 1, nanosleep(&pause, NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/.java_pid%d", getpid());
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink(address.sun_path); /* left by one that had this id before */
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 5)) return 4;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) continue;
        serve(client, mode);
        close(client);
    }
}
