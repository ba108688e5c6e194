#include "io/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.hpp"
#include "io/atomic_file.hpp"

namespace hf {
namespace {

constexpr const char* kFormat = "hyperframes-statistics";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMaxFileBytes = std::size_t{16} << 30;
constexpr char kHex[] = "0123456789abcdef";

/// Length of the valid UTF-8 sequence at the start of `s` (RFC 3629: no overlong forms, no surrogates), or 0.
std::size_t utf8_length(std::string_view s) noexcept {
  const auto at = [&](std::size_t i) {
    return i < s.size() ? static_cast<std::uint8_t>(s[i]) : std::uint8_t{0};
  };
  const auto tail = [&](std::size_t i) { return (at(i) & 0xC0) == 0x80; };
  const std::uint8_t c = at(0), d = at(1);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return tail(1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF)
    return tail(1) && tail(2) && !(c == 0xE0 && d < 0xA0) && !(c == 0xED && d > 0x9F) ? 3 : 0;
  if (c >= 0xF0 && c <= 0xF4)
    return tail(1) && tail(2) && tail(3) && !(c == 0xF0 && d < 0x90) && !(c == 0xF4 && d > 0x8F) ? 4 : 0;
  return 0;
}

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

const nlohmann::json& member(const nlohmann::json& j, const char* key, const std::string& where) {
  const auto it = j.find(key);
  if (it == j.end()) throw FormatError(where + ": key \"" + key + "\" is missing");
  return *it;
}

const nlohmann::json& object(const nlohmann::json& j, const std::string& where) {
  if (!j.is_object()) throw FormatError(where + ": expected an object, found " + j.type_name());
  return j;
}

double number(const nlohmann::json& j, const char* key, const std::string& where) {
  const nlohmann::json& value = member(j, key, where);
  if (!value.is_number())
    throw FormatError(where + "." + key + ": expected a number, found " + value.type_name());
  return value.get<double>();
}

}  // namespace

std::string escape_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t n = utf8_length(bytes);
    if (n == 0) {
      const auto b = static_cast<std::uint8_t>(bytes.front());
      out += {'\\', 'x', kHex[b >> 4], kHex[b & 15]};
    } else if (bytes.front() == '\\') {
      out += "\\\\";
    } else {
      out += bytes.substr(0, n);
    }
    bytes.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

std::string unescape_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      ++i;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && hex_value(text[i + 2]) >= 0 &&
               hex_value(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 2]) * 16 + hex_value(text[i + 3]));
      i += 3;
    } else {
      throw FormatError("\"" + std::string(text) + "\": expected \\\\ or \\xHH after a backslash");
    }
  }
  return out;
}

void save_statistics(const Statistics& statistics, const std::string& path) {
  nlohmann::json numeric = nlohmann::json::object(), vocabularies = nlohmann::json::object();
  for (const auto& [name, m] : statistics.numeric)
    numeric[escape_bytes(name)] = {{"mean", m.mean}, {"stddev", m.stddev}};
  for (const auto& [name, entries] : statistics.vocabularies) {
    auto& list = vocabularies[escape_bytes(name)] = nlohmann::json::array();
    for (const auto& e : entries) list.push_back(escape_bytes(e));
  }
  const nlohmann::json all = {{"format", kFormat},
                              {"format_version", kVersion},
                              {"numeric", numeric},
                              {"vocabularies", vocabularies}};
  write_file_atomically(path, all.dump(1) + "\n");
}

Statistics load_statistics(const std::string& path) {
  nlohmann::json all;
  try {
    all = nlohmann::json::parse(read_small_file(path, kMaxFileBytes));
  } catch (const nlohmann::json::exception& e) {
    throw FormatError(path + ": not JSON: " + e.what());
  }
  object(all, path);
  if (const auto& format = member(all, "format", path); format != kFormat)
    throw FormatError(path + ": format: expected \"" + kFormat + "\", found " + format.dump());
  if (const auto& version = member(all, "format_version", path); version != kVersion)
    throw FormatError(path + ": format_version: expected " + std::to_string(kVersion) + ", found " +
                      version.dump());

  Statistics out;
  try {
    for (const auto& [name, m] : object(member(all, "numeric", path), path + ": numeric").items()) {
      const std::string where = path + ": numeric." + name;
      const NumericMoments moments{number(object(m, where), "mean", where), number(m, "stddev", where)};
      if (!std::isfinite(moments.mean)) throw FormatError(where + ".mean: expected a finite number");
      if (!(moments.stddev > 0) || !std::isfinite(moments.stddev))
        throw FormatError(where + ".stddev: expected a number above 0, found " +
                          std::to_string(moments.stddev));
      out.numeric[unescape_bytes(name)] = moments;
    }
    for (const auto& [name, list] :
         object(member(all, "vocabularies", path), path + ": vocabularies").items()) {
      const std::string where = path + ": vocabularies." + name;
      if (!list.is_array()) throw FormatError(where + ": expected a list, found " + list.type_name());
      auto& entries = out.vocabularies[unescape_bytes(name)];
      std::unordered_set<std::string_view> seen;
      entries.reserve(list.size());
      for (const auto& e : list) {
        if (!e.is_string())
          throw FormatError(where + "[" + std::to_string(entries.size()) + "]: expected a text, found " +
                            e.type_name());
        entries.push_back(unescape_bytes(e.get_ref<const std::string&>()));
        // Twice the same text would give it two rows.
        if (!seen.insert(entries.back()).second)
          throw FormatError(where + "[" + std::to_string(entries.size() - 1) + "]: \"" +
                            e.get<std::string>() + "\" occurs twice");
      }
    }
  } catch (const FormatError& e) {
    const std::string what = e.what();
    throw FormatError(what.starts_with(path) ? what : path + ": " + what);
  }
  return out;
}

}  // namespace hf
