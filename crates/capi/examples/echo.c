/* An echo server on a stack of its own, with the system's poll(2). Needs root.
 *
 *   cc -I include examples/echo.c -o echo -L target/release -lfarpace */
#include <arpa/inet.h>
#include <farpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define MOST 64

int main(void) {
    if (fp_stack_tun("fp0", "10.77.0.1/24", "10.77.0.2", "modern") == NULL) {
        perror("fp0");
        return 1;
    }
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
    int listener = fp_socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || fp_bind(listener, &at, sizeof at) < 0 || fp_listen(listener, 16) < 0) {
        perror("listen");
        return 1;
    }
    struct pollfd fds[MOST] = {{.fd = listener, .events = POLLIN}};
    int count = 1;
    while (poll(fds, (nfds_t)count, -1) >= 0) {
        for (int i = count - 1; i > 0; i--) {
            char buffer[65536];
            if (fds[i].revents == 0)
                continue;
            ssize_t n = fp_read(fds[i].fd, buffer, sizeof buffer);
            if (n <= 0 || fp_write(fds[i].fd, buffer, (size_t)n) < 0) {
                close(fds[i].fd);
                fds[i] = fds[--count];
            }
        }
        if (fds[0].revents != 0 && count < MOST) {
            int fd = fp_accept(listener, NULL, NULL);
            if (fd >= 0)
                fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    perror("poll");
    return 1;
}
