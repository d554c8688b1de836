#include "symbols/demangle.h"

#include <cxxabi.h>

#include <cstdlib>

namespace slalom {
namespace {

// Returns the position of the bracket that closes the one at `open`; npos if there is none.
size_t closing(const std::string& text, size_t open, char opens, char closes) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == opens;
    depth -= text[at] == closes;
    if (depth == 0) return at;
  }
  return std::string::npos;
}

}  // namespace

std::string demangle(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return result;
}

std::string short_name(const std::string& symbol) {
  std::string name = demangle(symbol);
  // The first type in this tuple is the function that the std::thread runs.
  if (const size_t tuple = name.find("std::thread::_Invoker<std::tuple<"); tuple != std::string::npos) {
    const size_t open = name.find('<', name.find("std::tuple", tuple));
    const size_t close = closing(name, open, '<', '>');
    if (close != std::string::npos) name = name.substr(open + 1, close - open - 1);
    int depth = 0;
    for (size_t at = 0; at < name.size(); ++at) {
      depth += name[at] == '<' || name[at] == '(' || name[at] == '{';
      depth -= name[at] == '>' || name[at] == ')' || name[at] == '}';
      if (depth == 0 && name[at] == ',') name.resize(at);
    }
    while (!name.empty() && name.back() == ' ') name.pop_back();
    // Only the type of a function that std::async() calls is known.
    return name.find("(*)") != std::string::npos ? "async task" : name;
  }
  if (name == symbol) return name;
  // "main::{lambda()#1}::operator()() const" stands for the lambda.
  if (const size_t call = name.find("}::operator()"); call != std::string::npos)
    return name.substr(0, call + 1);
  const size_t from = name.rfind('}') == std::string::npos ? 0 : name.rfind('}');
  size_t open = std::string::npos;
  int angles = 0;
  for (size_t at = from; at < name.size() && open == std::string::npos; ++at) {
    angles += name[at] == '<';
    angles -= name[at] == '>';
    if (angles == 0 && name[at] == '(' && at > 0 && name.compare(at, 11, "(anonymous ") != 0) open = at;
  }
  return open == std::string::npos ? name : name.substr(0, open);
}

}  // namespace slalom
