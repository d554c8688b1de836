"""Programs that talk to a server, another program: what it sends comes when it comes, and yet executions are repeated."""

import socketserver
import threading
import time
import unittest

from support import ProgramTest

# Two threads ask at the same time, and read with a time limit; the second answer comes last, unless they are switched.
CLIENT = r"""
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
static int port, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *ask(void *name) {
  int server = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct timeval limit = {.tv_sec = 1};
  setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(server, (struct sockaddr *)&at, sizeof at) != 0) abort();
  if (write(server, name, 1) != 1) abort();
  char answer[64];
  ssize_t size = read(server, answer, sizeof answer);
  if (size != 10) {
    fprintf(stderr, "%zd bytes\n", size);
    abort();
  }
  pthread_mutex_lock(&lock);
  last = answer[9];
  pthread_mutex_unlock(&lock);
  close(server);
  return 0;
}
int main(int count, char **arguments) {
  port = atoi(arguments[count - 1]);
  pthread_t a, b;
  pthread_create(&a, 0, ask, "1");
  pthread_create(&b, 0, ask, "2");
  pthread_join(a, 0);
  pthread_join(b, 0);
  assert(last != '1');
  return 0;
}
"""


class Answer(socketserver.BaseRequestHandler):
    """In two parts, not at once."""

    def handle(self):
        name = self.request.recv(1)
        try:
            for part in (b"one, ", b"two " + name):
                time.sleep(0.001)
                self.request.sendall(part)
        except OSError:
            pass  # the execution was ended


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


class Servers(ProgramTest):
    def setUp(self):
        self.server = Server(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def test_what_a_server_answers_at_once_is_there_in_every_execution(self):
        program = self.build(CLIENT, "client", flags=["-fsanitize=thread"])
        port = self.server.server_address[1]
        done = self.slalom("run", "--strategy", "random", "--schedules", 20, "--workers", 1, "--", program, port, codes=(1,))
        text = " ".join(done.stdout.split())
        self.assertIn("last != '1'", text)
        self.assertNotIn("bytes", text)
        self.assertIn("Replayed 10/10: the same bug every time.", text)
        self.assertIn("warning: the program waits for something outside of it", text)


if __name__ == "__main__":
    unittest.main()
