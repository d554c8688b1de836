// GdbServer: the line to gdb: TCP on this host's loopback only, one client at a time, no thread.
//
// While the machine runs, stop_requested() looks whether gdb wants it to stop; serve() waits for packets when
// it stands still. When gdb goes away without a word, the machine stays as it is and waits for the next one.
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
  static Result<GdbServer> listen(uint16_t port);  // 0: any that is free
  ~GdbServer();
  GdbServer(GdbServer&& other) noexcept;
  GdbServer& operator=(GdbServer&&) = delete;

  uint16_t port() const { return port_; }
  // Until gdb detaches or kills, or `ended` says so, which is asked ten times a second.
  void serve(GdbStub& stub, const std::function<bool()>& ended);
  bool stop_requested();  // also when gdb is gone

 private:
  GdbServer(int listener, uint16_t port) : listener_(listener), port_(port) {}
  void accept_client(GdbStub& stub);
  void hang_up();
  bool receive();  // what is there; false: gdb is gone
  void send(const std::string& bytes);
  void handle(GdbStub& stub, const PacketReader::Piece& piece);

  int listener_ = -1;
  int client_ = -1;
  uint16_t port_ = 0;
  PacketReader reader_;
  std::string last_;  // what was sent last, should it get lost
};

}  // namespace slalom::vm
