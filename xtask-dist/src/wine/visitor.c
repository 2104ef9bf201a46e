/* Uninvited visitors of a runtime's pipe: what they do is the first word, the pipe the second.
   garbage: sends what is no message, and reads what comes. silent: connects, and says nothing until its standard input
   ends. squat: listens under a name that is not its own, as long. rights: prints who may open it, as a security
   descriptor (SDDL). Prints a line when it has begun. */
#include <stdio.h>
#include <string.h>
#include <windows.h>
#include <aclapi.h>
#include <sddl.h>

static HANDLE dial(const char *pipe) {
    for (int tries = 0; tries < 100; tries++) {
        HANDLE handle = CreateFileA(pipe, GENERIC_READ | GENERIC_WRITE | READ_CONTROL, 0, NULL, OPEN_EXISTING, 0, NULL);
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
    if (strcmp(words[1], "rights") == 0) {
        PSECURITY_DESCRIPTOR descriptor = NULL;
        char *text = NULL;
        if (GetSecurityInfo(handle, SE_KERNEL_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, NULL, NULL, &descriptor)) return 4;
        if (!ConvertSecurityDescriptorToStringSecurityDescriptorA(descriptor, SDDL_REVISION_1, DACL_SECURITY_INFORMATION, &text, NULL)) return 5;
        puts(text);
        return 0;
    }
    if (strcmp(words[1], "silent") == 0) {
        while (fread(bytes, 1, sizeof bytes, stdin) > 0) {}
        return 0;
    }
    memset(bytes, 0xff, sizeof bytes);
    WriteFile(handle, bytes, sizeof bytes, &moved, NULL);
    while (ReadFile(handle, bytes, sizeof bytes, &moved, NULL) && moved > 0) {}
    return 0;
}
