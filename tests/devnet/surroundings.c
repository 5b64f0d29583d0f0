/* Loaded before the C library: a clock that is set while programs run, and a disk that syncs slowly.
   Each figure is read from the file that a variable names, at every call. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long figure(const char *variable) {
    const char *path = getenv(variable);
    char text[32] = {0};
    long count;
    int file;
    if (path == NULL)
        return 0;
    file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    if (file < 0)
        return 0;
    count = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    return count > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += figure("SURROUNDINGS_CLOCK_SECONDS");
    return result;
}

static void wait_for_disk(void) {
    long ms = figure("SURROUNDINGS_SYNC_MS");
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    if (ms > 0)
        nanosleep(&time, NULL);
}

int fsync(int file) {
    wait_for_disk();
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, file);
}
