// GdbServer: the TCP connection to gdb, on this host's loopback only. One client at a time, no threads.
//
// While the machine runs, stop_requested() checks whether gdb wants it to stop. While it stands still,
// serve() waits for packets. If gdb disconnects without detaching, the machine stays as it is and waits for
// the next client.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "vm/gdb/packet.h"
#include "vm/gdb/stub.h"

namespace slalom::vm {

class GdbServer {
 public:
  static Result<GdbServer> listen(uint16_t port);  // 0: any free port
  ~GdbServer();
  GdbServer(GdbServer&& other) noexcept;
  GdbServer& operator=(GdbServer&&) = delete;

  uint16_t port() const { return port_; }
  // Returns when gdb detaches or kills, or when `ended` returns true; it is polled ten times per second.
  void serve(GdbStub& stub, const std::function<bool()>& ended);
  bool stop_requested();  // also true if gdb has disconnected

 private:
  GdbServer(int listener, uint16_t port) : listener_(listener), port_(port) {}
  void accept_client(GdbStub& stub);
  void hang_up();
  bool receive();  // reads available bytes; false if gdb has disconnected
  void send(const std::string& bytes);
  void handle(GdbStub& stub, const PacketReader::Piece& piece);

  int listener_ = -1;
  int client_ = -1;
  uint16_t port_ = 0;
  PacketReader reader_;
  std::string last_;  // the last packet sent, in case it gets lost
};

}  // namespace slalom::vm
