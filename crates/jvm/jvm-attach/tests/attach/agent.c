/* An agent that does nothing but return what its options say, after it has counted how often it was asked in FILE of
   "FILE=CODE". */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int times;

__attribute__((visibility("default"))) int Agent_OnAttach(void *vm, char *options, void *reserved) {
    (void)vm, (void)reserved;
    char *code = options ? strrchr(options, '=') : NULL;
    if (!code) return 99;
    *code++ = 0;
    FILE *out = fopen(options, "w");
    if (out) fprintf(out, "%d", ++times), fclose(out);
    return atoi(code);
}
