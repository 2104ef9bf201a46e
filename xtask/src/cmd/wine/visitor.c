/* Uninvited visitors of a runtime's pipe: what they do is the first word, the pipe the second.
   garbage: sends what is no message, and reads what comes. silent: connects, and says nothing for some seconds.
   squat: listens under a name that is not its own, until its standard input ends. Prints a line when it has begun. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

static HANDLE dial(const char *pipe) {
    for (int tries = 0; tries < 100; tries++) {
        HANDLE handle = CreateFileA(pipe, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
        if (handle != INVALID_HANDLE_VALUE) return handle;
        Sleep(20);
    }
    return INVALID_HANDLE_VALUE;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    char bytes[4096];
    DWORD moved = 0;
    if (strcmp(words[1], "squat") == 0) {
        HANDLE handle = CreateNamedPipeA(words[2], PIPE_ACCESS_DUPLEX, PIPE_TYPE_BYTE, 8, 4096, 4096, 0, NULL);
        if (handle == INVALID_HANDLE_VALUE) return 3;
        puts("begun");
        fflush(stdout);
        while (fread(bytes, 1, sizeof bytes, stdin) > 0) {}
        return 0;
    }
    HANDLE handle = dial(words[2]);
    if (handle == INVALID_HANDLE_VALUE) return 3;
    puts("begun");
    fflush(stdout);
    if (strcmp(words[1], "silent") == 0) {
        Sleep(4000);
        return 0;
    }
    memset(bytes, 0xff, sizeof bytes);
    WriteFile(handle, bytes, sizeof bytes, &moved, NULL);
    while (ReadFile(handle, bytes, sizeof bytes, &moved, NULL) && moved > 0) {}
    return 0;
}
