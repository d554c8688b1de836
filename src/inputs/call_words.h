// CallWords: the words of a list of calls that stand for structures and messages: ifreq{...},
// sockaddr_in(...), nlmsg(...) and so on. Only call_parser.cc uses it. docs/howto-kernel-test.md lists the
// words.
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/un.h>
#include <sys/socket.h>

#include <cstring>

#include "inputs/call_values.h"

namespace slalom {

class CallWords : public CallValues {
 public:
  using CallValues::CallValues;

 protected:
  static bool is_word(std::string_view name) {
    constexpr std::string_view kWords[] = {
        "sockaddr_in", "sockaddr_in6", "sockaddr_un", "sockaddr_nl", "sockaddr_ll", "sockaddr_vm", "attr",
        "nlmsg",       "nft",          "newlink",     "setlink",     "dellink",     "newaddr",     "deladdr",
        "newroute",    "delroute",     "newqdisc",    "delqdisc",    "newtclass",   "deltclass"};
    return std::ranges::find(kWords, name) != std::end(kWords);
  }

  Result<std::optional<Bytes>> bytes_word() override {
    const CallToken word = peek();
    if (word.kind != CallToken::Kind::Name) return std::optional<Bytes>();
    if (const auto type = StructType::find(word.text); type && is_sign("{", 1)) {
      TRY_ASSIGN(Bytes all, struct_literal(*type));
      return std::optional(std::move(all));
    }
    if (!is_sign("(", 1) || !is_word(word.text)) return std::optional<Bytes>();
    at_ += 2;
    Bytes all;
    if (word.text.starts_with("sockaddr")) {
      TRY_ASSIGN(all, address(word));
    } else if (word.text == "attr") {
      TRY_ASSIGN(all, attribute());
    } else if (word.text == "nlmsg") {
      TRY_ASSIGN(all, message());
    } else if (word.text == "nft") {
      TRY_ASSIGN(all, nft());
    } else {
      TRY_ASSIGN(all, request(word));
    }
    TRY(expect_sign(")", fmt::format("after what {} needs", word.text)));
    return std::optional(std::move(all));
  }

 private:
  // --- structures of the kernel's headers ---

  // Parses NAME{field: value, ...}. Fields that are not given are zero.
  Result<Bytes> struct_literal(const StructType& type) {
    at_ += 2;
    Bytes all;
    all.bytes.resize(type.size());
    bool first = true;
    while (!is_sign("}")) {
      if (!std::exchange(first, false)) TRY(expect_sign(",", "between two fields"));
      const CallToken token = peek();
      std::string name = token.text;
      if (token.kind != CallToken::Kind::Name)
        return wrong(token, "expected a field of {}, not {}", type.name(), shown(token));
      ++at_;
      while (is_sign(".") && peek(1).kind == CallToken::Kind::Name) {
        name += "." + peek(1).text;
        at_ += 2;
      }
      TRY_ASSIGN(const StructField* field, known_field(type, token, name));
      TRY(expect_sign(":", fmt::format("after the field {}", name)));
      TRY(struct_field(all, type, *field));
    }
    ++at_;
    all.bytes.resize(type.size());
    return all;
  }

  Result<void> struct_field(Bytes& all, const StructType& type, StructField field) {
    const CallToken token = peek();
    if (field.kind == StructField::Kind::Text || field.kind == StructField::Kind::Bytes) {
      Bytes content;
      TRY_ASSIGN(std::optional<Bytes> inner, bytes_word());
      if (inner) {
        content = *std::move(inner);
      } else if (token.kind == CallToken::Kind::Text) {
        ++at_;
        content.bytes = token.text;
      } else if (token.text == "{") {
        TRY_ASSIGN(content, structure());
      } else if (const StructField* number = type.number_in(field)) {
        return number_field(all, *number);
      } else {
        return wrong(token, "{} has {} bytes: give it \"text\" or {{u8 1, ...}}", field.name, field.size);
      }
      if (content.bytes.size() > field.size)
        return wrong(token, "{} has room for {} bytes, and these are {}", field.name, field.size,
                     content.bytes.size());
      for (Bytes::Late each : content.late) {
        each.offset += field.offset;
        all.late.push_back(each);
      }
      std::ranges::copy(content.bytes, all.bytes.begin() + field.offset);
      return {};
    }
    return number_field(all, field);
  }

  Result<void> number_field(Bytes& all, const StructField& field) {
    const CallToken token = peek();
    TRY_ASSIGN(const Operand what, value());
    if (is_constant(what) && field.size < 8) {
      const uint64_t most = (uint64_t{1} << (8 * field.size)) - 1;
      const bool negative = static_cast<int64_t>(what.value) < 0 &&
                            static_cast<int64_t>(what.value) >= -static_cast<int64_t>(most / 2) - 1;
      if (what.value > most && !negative)
        return wrong(token, "{} has {} bytes, and {} does not fit into them", field.name, field.size,
                     what.value);
    }
    return put(all, field.offset, field.size, field.kind == StructField::Kind::BigEndian, token, what);
  }

  // --- arguments of words ---

  Result<std::string> text_argument(std::string_view what) {
    const CallToken token = peek();
    if (token.kind != CallToken::Kind::Text)
      return wrong(token, "expected {} in quotes, not {}", what, shown(token));
    ++at_;
    return token.text;
  }
  Result<uint64_t> number_argument(std::string_view what) {
    const CallToken token = peek();
    TRY_ASSIGN(const Operand given, value());
    if (!is_constant(given)) return wrong(token, "{} must be a number that is known beforehand", what);
    return given.value;
  }
  // An argument after a comma, or `otherwise` at the end.
  Result<uint64_t> optional_number(std::string_view what, uint64_t otherwise) {
    if (is_sign(")")) return otherwise;
    TRY(expect_sign(",", "before the next argument"));
    return number_argument(what);
  }
  Result<void> comma() { return expect_sign(",", "before the next argument"); }

  template <typename Plain>
  static Bytes bytes_of(const Plain& plain, size_t size = sizeof(Plain)) {
    Bytes all;
    all.bytes.assign(reinterpret_cast<const char*>(&plain), size);
    return all;
  }

  // --- addresses of sockets ---

  // Parses "1.2.3.4" or "::1".
  Result<std::string> internet_address(int family) {
    const CallToken token = peek();
    TRY_ASSIGN(const std::string text, text_argument("an address"));
    std::string bytes(family == AF_INET ? 4 : 16, '\0');
    if (inet_pton(family, text.c_str(), bytes.data()) != 1)
      return wrong(token, "\"{}\" is no address such as \"{}\"", text,
                   family == AF_INET ? "127.0.0.1" : "::1");
    return bytes;
  }

  Result<Bytes> address(const CallToken& word) {
    Bytes all;
    if (word.text == "sockaddr_un") {
      const CallToken token = peek();
      TRY_ASSIGN(const std::string path, text_argument("a path"));
      sockaddr_un unix_address{.sun_family = AF_UNIX, .sun_path = {}};
      if (path.size() > sizeof unix_address.sun_path)
        return wrong(token, "the path of a socket has at most {} bytes", sizeof unix_address.sun_path);
      std::ranges::copy(path, unix_address.sun_path);
      // An abstract name ends with its last byte, a path with a zero.
      const bool is_abstract = path.starts_with('\0');
      return bytes_of(unix_address, is_abstract ? 2 + path.size() : sizeof unix_address);
    }
    if (word.text == "sockaddr_in" || word.text == "sockaddr_in6") {
      const bool old = word.text == "sockaddr_in";
      TRY_ASSIGN(const std::string host, internet_address(old ? AF_INET : AF_INET6));
      TRY_ASSIGN(const uint64_t port, optional_number("the port", 0));
      if (port > 0xffff) return wrong(word, "a port is a number up to 65535, not {}", port);
      all.bytes.resize(old ? 16 : 28);
      all.bytes[0] = static_cast<char>(old ? AF_INET : AF_INET6);
      all.bytes[2] = static_cast<char>(port >> 8);
      all.bytes[3] = static_cast<char>(port);
      all.bytes.replace(old ? 4 : 8, host.size(), host);
      return all;
    }
    const bool is_netlink = word.text == "sockaddr_nl", is_packet = word.text == "sockaddr_ll";
    all.bytes.resize(is_netlink ? 12 : is_packet ? 20 : 16);
    all.bytes[0] = static_cast<char>(is_netlink ? AF_NETLINK : is_packet ? AF_PACKET : AF_VSOCK);
    if (is_sign(")")) {
      if (is_netlink) return all;
      if (is_packet)
        return wrong(peek(), "sockaddr_ll needs the number of an interface: sockaddr_ll(1, ETH_P_ALL)");
      return wrong(peek(), "sockaddr_vm needs a context and a port: sockaddr_vm(1, 80)");
    }
    const CallToken token = peek();
    TRY_ASSIGN(const Operand first, value());
    TRY_ASSIGN(const uint64_t second, optional_number("the second argument", 0));
    const Operand more{.value = second};
    if (is_packet) {  // interface, protocol
      TRY(put(all, 4, 4, false, token, first));
      TRY(put(all, 2, 2, true, token, more));
    } else if (is_netlink) {  // groups, port
      TRY(put(all, 8, 4, false, token, first));
      TRY(put(all, 4, 4, false, token, more));
    } else {  // context, port
      TRY(put(all, 8, 4, false, token, first));
      TRY(put(all, 4, 4, false, token, more));
    }
    return all;
  }

  // --- netlink ---

  // The length of a message or attribute is at its beginning.
  static Bytes attribute_of(uint64_t type, const Bytes& content) {
    Bytes all = bytes_of(nlattr{.nla_len = static_cast<uint16_t>(4 + content.bytes.size()),
                                .nla_type = static_cast<uint16_t>(type)});
    all.append(content);
    all.append_zeros(4);
    return all;
  }
  static Bytes text_of(const std::string& text) {
    Bytes all;
    all.bytes = text + '\0';
    return all;
  }
  template <typename Plain>
  static Bytes plain_attribute(uint64_t type, const Plain& plain) {
    return attribute_of(type, bytes_of(plain));
  }

  // Parses what is left of attr(type, content, ...).
  Result<Bytes> attribute() {
    const CallToken token = peek();
    TRY_ASSIGN(uint64_t type, number_argument("the type of an attribute"));
    Bytes content;
    while (!is_sign(")")) {
      TRY(comma());
      const CallToken inner = peek();
      TRY_ASSIGN(const std::optional<Bytes> word, bytes_word());
      if (word) {
        if (inner.text == "attr") type |= NLA_F_NESTED;
        content.append(*word);
      } else if (inner.kind == CallToken::Kind::Text) {
        ++at_;
        content.append(text_of(inner.text));
      } else if (inner.text == "{") {
        TRY_ASSIGN(const Bytes given, structure());
        content.append(given);
      } else if (inner.kind == CallToken::Kind::Name && find_type(inner.text) != nullptr) {
        TRY(structure_field(content));
      } else {
        TRY_ASSIGN(const Operand number, value());
        TRY(put(content, content.bytes.size(), 4, false, inner, number));
      }
    }
    if (content.bytes.size() > 0xfff0) return wrong(token, "an attribute has less than 64 KiB");
    return attribute_of(type, content);
  }

  // What follows the fixed part of a message.
  Result<void> append_rest(Bytes& body) {
    while (!is_sign(")")) {
      TRY(comma());
      const CallToken token = peek();
      body.append_zeros(4);
      if (token.text == "{") {
        TRY_ASSIGN(const Bytes given, structure());
        body.append(given);
        continue;
      }
      TRY_ASSIGN(const std::optional<Bytes> given, bytes_word());
      if (!given)
        return wrong(token, "expected attr(...) or a structure such as ifinfomsg{{...}}, not {}",
                     shown(token));
      body.append(*given);
    }
    return {};
  }

  static Bytes message_of(uint64_t type, uint64_t flags, const Bytes& body) {
    Bytes all = bytes_of(nlmsghdr{.nlmsg_len = static_cast<uint32_t>(NLMSG_HDRLEN + body.bytes.size()),
                                  .nlmsg_type = static_cast<uint16_t>(type),
                                  .nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST),
                                  .nlmsg_seq = 1,
                                  .nlmsg_pid = 0});
    all.append(body);
    all.append_zeros(4);
    return all;
  }

  // Parses what is left of nlmsg(type, flags, body ...).
  Result<Bytes> message() {
    TRY_ASSIGN(const uint64_t type, number_argument("the type of a message"));
    TRY_ASSIGN(const uint64_t flags, optional_number("the flags of a message", 0));
    Bytes body;
    TRY(append_rest(body));
    return message_of(type, flags, body);
  }

  // Parses what is left of nft(message, family, flags, attr ...): a batch of one message.
  Result<Bytes> nft() {
    TRY_ASSIGN(const uint64_t type, number_argument("the message"));
    TRY_ASSIGN(const uint64_t family, optional_number("the family", AF_INET));
    TRY_ASSIGN(const uint64_t flags, optional_number("the flags", NLM_F_CREATE));
    const nfgenmsg batch{.nfgen_family = AF_UNSPEC, .version = 0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    Bytes body = bytes_of(nfgenmsg{.nfgen_family = static_cast<uint8_t>(family), .version = 0, .res_id = 0});
    TRY(append_rest(body));
    Bytes all = message_of(NFNL_MSG_BATCH_BEGIN, 0, bytes_of(batch));
    all.append(message_of(NFNL_SUBSYS_NFTABLES << 8 | type, flags, body));
    all.append(message_of(NFNL_MSG_BATCH_END, 0, bytes_of(batch)));
    return all;
  }

  // Requests to rtnetlink, named as their messages: newlink("d0", "dummy").
  Result<Bytes> request(const CallToken& word) {
    const std::string& name = word.text;
    const bool creates = name.starts_with("new");
    const uint64_t flags = creates ? NLM_F_CREATE | NLM_F_EXCL : 0;
    Bytes body;
    uint64_t type = 0;
    if (name == "newlink" || name == "dellink") {
      type = creates ? RTM_NEWLINK : RTM_DELLINK;
      TRY_ASSIGN(const std::string link, text_argument("the name of a link"));
      body = bytes_of(ifinfomsg{});
      body.append(attribute_of(IFLA_IFNAME, text_of(link)));
      if (creates) {
        TRY(comma());
        TRY_ASSIGN(const std::string kind, text_argument("the kind of the link"));
        const Bytes info = attribute_of(IFLA_INFO_KIND, text_of(kind));
        body.append(attribute_of(IFLA_LINKINFO | NLA_F_NESTED, info));
      }
    } else if (name == "setlink") {
      type = RTM_NEWLINK;
      constexpr uint32_t kUp = 1;  // IFF_UP
      const CallToken token = peek();
      TRY_ASSIGN(const Operand index, value());
      TRY_ASSIGN(const uint64_t set, optional_number("the flags of a link", 0));
      body = bytes_of(ifinfomsg{.ifi_family = 0,
                                .ifi_type = 0,
                                .ifi_index = 0,
                                .ifi_flags = static_cast<uint32_t>(set),
                                .ifi_change = kUp | static_cast<uint32_t>(set)});
      TRY(put(body, offsetof(ifinfomsg, ifi_index), 4, false, token, index));
    } else if (name == "newaddr" || name == "deladdr") {
      type = creates ? RTM_NEWADDR : RTM_DELADDR;
      const CallToken token = peek();
      TRY_ASSIGN(const Operand index, value());
      TRY(comma());
      TRY_ASSIGN(const std::string host, internet_address(AF_INET));
      TRY_ASSIGN(const uint64_t length, optional_number("the length of the prefix", 32));
      body = bytes_of(ifaddrmsg{.ifa_family = AF_INET,
                                .ifa_prefixlen = static_cast<uint8_t>(length),
                                .ifa_flags = 0,
                                .ifa_scope = 0,
                                .ifa_index = 0});
      TRY(put(body, offsetof(ifaddrmsg, ifa_index), 4, false, token, index));
      Bytes raw;
      raw.bytes = host;
      body.append(attribute_of(IFA_LOCAL, raw));
      body.append(attribute_of(IFA_ADDRESS, raw));
    } else if (name == "newroute" || name == "delroute") {
      type = creates ? RTM_NEWROUTE : RTM_DELROUTE;
      TRY_ASSIGN(const std::string host, internet_address(AF_INET));
      TRY(comma());
      TRY_ASSIGN(const uint64_t length, number_argument("the length of the prefix"));
      TRY(comma());
      const CallToken token = peek();
      TRY_ASSIGN(const Operand index, value());
      rtmsg route{};
      route.rtm_family = AF_INET;
      route.rtm_dst_len = static_cast<uint8_t>(length);
      route.rtm_table = RT_TABLE_MAIN;
      route.rtm_protocol = RTPROT_BOOT;
      route.rtm_scope = RT_SCOPE_LINK;
      route.rtm_type = RTN_UNICAST;
      body = bytes_of(route);
      Bytes raw, out;
      raw.bytes = host;
      body.append(attribute_of(RTA_DST, raw));
      TRY(put(out, 0, 4, false, token, index));
      body.append(attribute_of(RTA_OIF, out));
    } else {  // qdiscs and classes: interface, parent, handle, kind
      const bool is_class = name.ends_with("class");
      type = is_class ? (creates ? RTM_NEWTCLASS : RTM_DELTCLASS) : (creates ? RTM_NEWQDISC : RTM_DELQDISC);
      const CallToken token = peek();
      TRY_ASSIGN(const Operand index, value());
      TRY_ASSIGN(const uint64_t parent, optional_number("the parent", TC_H_ROOT));
      TRY_ASSIGN(const uint64_t handle, optional_number("the handle", 0));
      tcmsg control{};
      control.tcm_parent = static_cast<uint32_t>(parent);
      control.tcm_handle = static_cast<uint32_t>(handle);
      body = bytes_of(control);
      TRY(put(body, offsetof(tcmsg, tcm_ifindex), 4, false, token, index));
      if (creates) {
        TRY(comma());
        TRY_ASSIGN(const std::string kind, text_argument("the kind"));
        body.append(attribute_of(TCA_KIND, text_of(kind)));
      }
    }
    TRY(append_rest(body));
    return message_of(type, flags, body);
  }
};

}  // namespace slalom
