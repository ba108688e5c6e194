#include <xxhash.h>

#include <charconv>
#include <cstdio>
#include <type_traits>

#include "core/config_keys.hpp"
#include "core/units.hpp"

namespace hf {
namespace {

template <class T>
std::string shortest(T value) {  // reads back as the same number
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string quoted(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  bool safe = !text.empty() &&
              ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') || text[0] == '/');
  for (const char c : text) safe = safe && plain(c);
  for (const char* word :
       {"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes",
        "no",   "No",   "NO",   "on",   "On",   "off",  "Off",   "y",     "n",     "Y",   "N"})
    safe = safe && text != word;
  if (safe) return text;
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", byte);
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar(const std::string& text) { return quoted(text); }
std::string scalar(bool value) { return value ? "true" : "false"; }
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) std::string scalar(T value) {
  return shortest(value);
}
template <class E>
requires std::is_enum_v<E> std::string scalar(E value) {
  for (const auto& [v, name] : keys::enum_names(value))
    if (v == value) return name;
  return "?";
}
std::string scalar(const keys::DenseOptimizerKind& kind) { return to_string(kind.value); }
std::string scalar(const keys::ByteSize& size) {
  for (const auto& [unit, name] : {std::pair{1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}})
    if (size.value >= unit && size.value % unit == 0) return shortest(size.value / unit) + name;
  return shortest(size.value);
}
std::string scalar(const keys::StalenessBound& bound) {
  return bound.value == kStalenessInfinite ? "inf" : shortest(bound.value);
}
std::string scalar(const keys::ServerRatio& ratio) {
  if (!ratio.value) return "null";
  return '"' + shortest(ratio.value->first) + ':' + shortest(ratio.value->second) + '"';
}
template <class T>
std::string scalar(const std::optional<T>& value) {
  return value ? scalar(*value) : "null";
}
template <class T>
std::string scalar(const std::vector<T>& list) {
  std::string text = "[";
  for (const T& item : list) text += (text.size() > 1 ? ", " : "") + scalar(item);
  return text + "]";
}

/// Writes block mappings; list items and optional groups as flow mappings on one line.
class Printer {
 public:
  Printer(std::string& out, std::string indent, bool flow)
      : out_(out), indent_(std::move(indent)), flow_(flow) {}

  template <class T>
  void value(const char* key, T& member, const keys::Bounds& = {}) {
    begin(key);
    out_ += (flow_ ? "" : " ") + scalar(member) + (flow_ ? "" : "\n");
  }
  template <class F>
  void group(const char* key, F describe_members) {
    begin(key);
    if (flow_) return in_braces(describe_members);
    out_ += "\n";
    Printer inner(out_, indent_ + "  ", false);
    describe_members(inner);
  }
  template <class T, class F>
  void optional_group(const char* key, std::optional<T>& member, const T&, F describe_members) {
    begin(key);
    if (!flow_) out_ += " ";
    if (member)
      in_braces([&](auto& inner) { describe_members(inner, *member); });
    else
      out_ += "null";
    if (!flow_) out_ += "\n";
  }
  template <class T, class F>
  void items(const char* key, std::vector<T>& list, F describe_members) {
    begin(key);
    out_ += list.empty() ? " []\n" : "\n";
    for (T& item : list) {
      out_ += indent_ + "  - ";
      in_braces([&](auto& inner) { describe_members(inner, item); });
      out_ += "\n";
    }
  }

 private:
  void begin(const char* key) {
    if (flow_) {
      out_ += first_ ? "" : ", ";
      out_ += std::string(key) + ": ";
    } else {
      out_ += indent_ + key + ":";
    }
    first_ = false;
  }
  template <class F>
  void in_braces(F describe_members) {
    out_ += "{";
    Printer inner(out_, "", true);
    describe_members(inner);
    out_ += "}";
  }

  std::string& out_;
  std::string indent_;
  bool flow_;
  bool first_ = true;
};

template <class E>
const char* name_of(E value) noexcept {
  for (const auto& [v, name] : keys::enum_names(value))
    if (v == value) return name;
  return "?";
}

}  // namespace

std::string print_config(const Config& config) {
  Config copy = config;
  std::string out;
  Printer printer(out, "", false);
  keys::describe(printer, copy);
  return out;
}

std::string config_hash(const Config& config) {
  Config copy = config;
  copy.workdir.clear();
  copy.checkpoint_dir.clear();
  copy.cluster = ClusterConfig{};
  const std::string text = print_config(copy);
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx",
                static_cast<unsigned long long>(XXH64(text.data(), text.size(), 0)));
  return hex.data();
}

const char* to_string(DataFormat value) noexcept { return name_of(value); }
const char* to_string(ModelKind value) noexcept { return name_of(value); }
const char* to_string(Transport value) noexcept { return name_of(value); }
const char* to_string(RoleChoice value) noexcept { return name_of(value); }

}  // namespace hf
