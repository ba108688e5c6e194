#include "io/sparse_tokens.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "io/encoder.hpp"

namespace hf::sparse_text {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

std::string_view without_plus(std::string_view text) noexcept {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view without_comment(std::string_view line) noexcept { return line.substr(0, line.find('#')); }

std::string_view take_token(std::string_view& line) noexcept {
  std::size_t begin = 0;
  while (begin < line.size() && is_blank(line[begin])) ++begin;
  std::size_t end = begin;
  while (end < line.size() && !is_blank(line[end])) ++end;
  const auto token = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return token;
}

bool take_label(std::string_view& line, bool required, std::optional<float>& label, std::string& reason) {
  std::string_view rest = line;
  const std::string_view token = take_token(rest);
  label.reset();
  if (token.empty() || token.find(':') != std::string_view::npos) {
    if (required) reason = "the row has no label";
    return !required;
  }
  const auto value = parse_number(without_plus(token));
  if (!value || (*value != 1.0 && *value != 0.0 && *value != -1.0)) {
    reason = "label '" + std::string(token.substr(0, 40)) + "' is none of 1, 0, -1";
    return false;
  }
  label = *value > 0.0 ? 1.0F : 0.0F;
  line = rest;
  return true;
}

bool is_id(std::string_view text) noexcept {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<float> parse_weight(std::string_view text) noexcept {
  const auto value = parse_number(without_plus(text));
  if (!value) return std::nullopt;
  const auto weight = static_cast<float>(*value);
  return std::isfinite(weight) ? std::optional(weight) : std::nullopt;
}

}  // namespace hf::sparse_text
