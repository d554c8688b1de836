#include "vm/gdb/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace slalom::vm {
namespace {

constexpr int kPatience = 100;  // milliseconds

bool readable(int descriptor, int milliseconds) {
  pollfd poll_for{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&poll_for, 1, milliseconds) > 0;
}

}  // namespace

Result<GdbServer> GdbServer::listen(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return error("there is no socket for gdb: {}", std::strerror(errno));
  GdbServer server(listener, port);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 1) != 0)
    return error("cannot wait for gdb on port {}: {}; give another --gdb port, or 0 for any that is free",
                 port, std::strerror(errno));
  socklen_t size = sizeof address;
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    server.port_ = ntohs(address.sin_port);
  return server;
}

GdbServer::GdbServer(GdbServer&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      client_(std::exchange(other.client_, -1)),
      port_(other.port_),
      reader_(std::move(other.reader_)),
      last_(std::move(other.last_)) {}

GdbServer::~GdbServer() {
  hang_up();
  if (listener_ >= 0) close(listener_);
}

void GdbServer::hang_up() {
  if (client_ >= 0) close(client_);
  client_ = -1;
}

void GdbServer::accept_client(GdbStub& stub) {
  if (!readable(listener_, kPatience)) return;
  client_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client_ < 0) return;
  const int yes = 1;
  setsockopt(client_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  reader_ = PacketReader();
  last_.clear();
  stub.new_client();
}

bool GdbServer::receive() {
  char buffer[4096];
  const ssize_t size = recv(client_, buffer, sizeof buffer, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (size <= 0) {
    hang_up();
    return false;
  }
  reader_.feed({buffer, static_cast<size_t>(size)});
  return true;
}

void GdbServer::send(const std::string& bytes) {
  for (size_t done = 0; client_ >= 0 && done < bytes.size();) {
    const ssize_t size = ::send(client_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return hang_up();
    done += static_cast<size_t>(size);
  }
}

bool GdbServer::stop_requested() {
  return client_ < 0 || !receive() || reader_.take_break();
}

void GdbServer::handle(GdbStub& stub, const PacketReader::Piece& piece) {
  const bool acknowledges = stub.wants_acknowledgements();
  switch (piece.kind) {
    case PacketReader::Kind::Packet:
      if (acknowledges) send("+");
      last_.clear();
      for (const std::string& body : stub.answer(piece.body)) {
        last_ = frame_packet(body);
        send(last_);
      }
      break;
    case PacketReader::Kind::Damaged:
      if (acknowledges) send("-");
      break;
    case PacketReader::Kind::Again:
      if (acknowledges) send(last_);
      break;
    case PacketReader::Kind::Break:  // the machine already stands still
      break;
  }
}

void GdbServer::serve(GdbStub& stub, const std::function<bool()>& ended) {
  while (!stub.detached() && !stub.killed() && !ended()) {
    if (client_ < 0) {
      accept_client(stub);
      continue;
    }
    if (const auto piece = reader_.next())
      handle(stub, *piece);
    else if (readable(client_, kPatience))
      receive();
  }
  hang_up();
}

}  // namespace slalom::vm
