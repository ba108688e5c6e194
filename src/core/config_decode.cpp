#include "core/config_decode.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "core/config_keys.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "core/units.hpp"

namespace hf {
namespace {

using keys::Bounds;

// --------------------------------------------------------------------------------- a single value
// Each read() returns false and says in `expected` what the tree should have held.

std::string number_text(double value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string with_bounds(std::string what, const Bounds& bounds) {
  const bool low = std::isfinite(bounds.min), high = std::isfinite(bounds.max);
  if (low) what += (bounds.above_min ? " above " : " of at least ") + number_text(bounds.min);
  if (high)
    what += (low ? std::string(" and ") : " ") + (bounds.below_max ? "below " : "at most ") +
            number_text(bounds.max);
  return what;
}

bool inside(double value, const Bounds& bounds) {
  return (bounds.above_min ? value > bounds.min : value >= bounds.min) &&
         (bounds.below_max ? value < bounds.max : value <= bounds.max);
}

template <class T>
requires(std::is_arithmetic_v<T> &&
         !std::is_same_v<T, bool>) bool read(const Tree& tree, T& out, Bounds bounds, std::string& expected) {
  if (std::is_integral_v<T> && !std::isfinite(bounds.min)) bounds.min = 0;
  expected = with_bounds(std::is_integral_v<T> ? "a whole number" : "a number", bounds);
  if (tree.kind != Tree::Kind::scalar) return false;
  std::string_view text = tree.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec == std::errc::result_out_of_range && std::is_integral_v<T>)
    expected += " that is not above " + std::to_string(std::numeric_limits<T>::max());
  if (ec != std::errc() || ptr != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return false;
  if (!inside(static_cast<double>(value), bounds)) return false;
  out = value;
  return true;
}

bool read(const Tree& tree, bool& out, const Bounds&, std::string& expected) {
  expected = "true or false";
  if (tree.kind != Tree::Kind::scalar) return false;
  std::string text;
  for (const char c : tree.text) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool yes = text == "true" || text == "yes" || text == "on";
  if (!yes && text != "false" && text != "no" && text != "off") return false;
  out = yes;
  return true;
}

bool read(const Tree& tree, std::string& out, const Bounds&, std::string& expected) {
  expected = "a text";
  if (tree.kind != Tree::Kind::scalar && tree.kind != Tree::Kind::null) return false;
  if (tree.text.find('\0') != std::string::npos) {
    expected = "a text without NUL bytes";
    return false;
  }
  out = tree.text;
  return true;
}

template <class E, class Accept>
bool read_enum(const Tree& tree, E& out, std::string& expected, Accept accept) {
  std::vector<std::string> names;
  for (const auto& [value, name] : keys::enum_names(E{})) {
    if (!accept(value)) continue;
    names.emplace_back(name);
    if (tree.kind == Tree::Kind::scalar && tree.text == name) {
      out = value;
      return true;
    }
  }
  expected = "one of ";
  for (const std::string& name : names) expected += (name == names.front() ? "" : ", ") + name;
  const std::string near = nearest_name(tree.text, names);
  if (!near.empty()) expected += " (did you mean " + near + "?)";
  return false;
}

template <class E>
requires std::is_enum_v<E>
bool read(const Tree& tree, E& out, const Bounds&, std::string& expected) {
  return read_enum(tree, out, expected, [](E) { return true; });
}
bool read(const Tree& tree, keys::DenseOptimizerKind& out, const Bounds&, std::string& expected) {
  return read_enum(tree, out.value, expected, keys::is_dense_optimizer);
}

bool read(const Tree& tree, keys::ByteSize& out, const Bounds& bounds, std::string& expected) {
  expected = with_bounds("a size like 64MiB or 8GB", bounds) + " bytes";
  if (tree.kind != Tree::Kind::scalar) return false;
  try {
    const std::uint64_t bytes = parse_bytes(tree.text);
    if (!inside(static_cast<double>(bytes), bounds)) return false;
    out.value = bytes;
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

bool read(const Tree& tree, keys::StalenessBound& out, const Bounds& bounds, std::string& expected) {
  if (tree.kind == Tree::Kind::scalar && (tree.text == "inf" || tree.text == ".inf")) {
    out.value = kStalenessInfinite;
    return true;
  }
  const bool good = read(tree, out.value, bounds, expected);
  expected += " or inf";
  return good;
}

bool read(const Tree& tree, keys::ServerRatio& out, const Bounds&, std::string& expected) {
  if (tree.kind == Tree::Kind::null) {
    out.value.reset();
    return true;
  }
  expected = "servers:workers, two whole numbers above 0, for instance \"1:3\"";
  if (tree.kind != Tree::Kind::scalar) return false;
  const char* const end = tree.text.data() + tree.text.size();
  std::uint32_t servers = 0, workers = 0;
  const auto left = std::from_chars(tree.text.data(), end, servers);
  if (left.ec != std::errc() || left.ptr == end || *left.ptr != ':') return false;
  const auto right = std::from_chars(left.ptr + 1, end, workers);
  if (right.ec != std::errc() || right.ptr != end || servers == 0 || workers == 0) return false;
  out.value = {servers, workers};
  return true;
}

// ------------------------------------------------------------------------------------ suggestions

/// Every key as a path, list items as "tables[].rows".
class KeyLister {
 public:
  KeyLister(std::vector<std::string>& paths, std::string prefix)
      : paths_(paths), prefix_(std::move(prefix)) {}

  template <class T>
  void value(const char* key, T&, const Bounds& = {}) {
    paths_.push_back(prefix_ + key);
  }
  template <class F>
  void group(const char* key, F describe_members) {
    KeyLister inner(paths_, prefix_ + key + ".");
    paths_.push_back(prefix_ + key);
    describe_members(inner);
  }
  template <class T, class F>
  void optional_group(const char* key, std::optional<T>&, const T&, F describe_members) {
    T dummy{};
    group(key, [&](auto& inner) { describe_members(inner, dummy); });
  }
  template <class T, class F>
  void items(const char* key, std::vector<T>&, F describe_members) {
    T dummy{};
    paths_.push_back(prefix_ + key);
    KeyLister inner(paths_, prefix_ + key + "[].");
    describe_members(inner, dummy);
  }

 private:
  std::vector<std::string>& paths_;
  std::string prefix_;
};

std::string leaf_of(const std::string& path) { return path.substr(path.rfind('.') + 1); }

/// What to write instead of an unknown key of the mapping at `path` whose keys are `siblings`.
std::string advice(const std::string& path, const std::string& key,
                   const std::vector<std::string>& siblings) {
  const std::string prefix = path.empty() ? "" : path + ".";
  const std::string near = nearest_name(key, siblings);
  if (!near.empty() && edit_distance(key, near) <= 1) return "did you mean " + prefix + near + "?";

  std::vector<std::string> paths, leaves;
  Config defaults;
  KeyLister lister(paths, "");
  keys::describe(lister, defaults);
  std::string elsewhere;
  int count = 0;
  for (const std::string& other : paths) {
    leaves.push_back(leaf_of(other));
    if (leaves.back() == key && ++count <= 3) elsewhere += (elsewhere.empty() ? "" : " or ") + other;
  }
  if (!elsewhere.empty()) return "did you mean " + elsewhere + "?";
  if (!near.empty()) return "did you mean " + prefix + near + "?";
  const std::string near_leaf = nearest_name(key, leaves);
  if (!near_leaf.empty())
    return "did you mean " +
           paths[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), near_leaf) -
                                          leaves.begin())] +
           "?";
  std::string valid;
  for (const std::string& name : siblings) valid += (valid.empty() ? "" : ", ") + name;
  return "valid keys here: " + valid;
}

// ---------------------------------------------------------------------------------------- decoder

struct Context {
  Positions& positions;
  Problems& problems;

  void wrong(const Tree& tree, const std::string& path, const std::string& expected) {
    positions.failed.insert(path);
    problems.add(tree.where, path, "expected " + expected + ", found " + tree.found());
  }
};

class Decoder {
 public:
  Decoder(const Tree& map, std::string path, Context& context)
      : map_(map), path_(std::move(path)), context_(context) {}

  template <class T>
  void value(const char* key, T& member, const Bounds& bounds = {}) {
    if (const Tree* tree = take(key)) read_value(*tree, join(key), member, bounds);
  }

  template <class F>
  void group(const char* key, F describe_members) {
    const Tree* tree = take(key);
    if (tree == nullptr || tree->kind == Tree::Kind::null) return;  // `train:` with every key commented out
    read_mapping(*tree, join(key), describe_members);
  }

  template <class T, class F>
  void optional_group(const char* key, std::optional<T>& member, const T& base, F describe_members) {
    const Tree* tree = take(key);
    if (tree == nullptr) return;
    member.reset();
    if (tree->kind == Tree::Kind::null) return;
    member = base;
    read_mapping(*tree, join(key), [&](auto& inner) { describe_members(inner, *member); });
  }

  template <class T, class F>
  void items(const char* key, std::vector<T>& list, F describe_members) {
    const Tree* tree = take(key);
    if (tree == nullptr) return;
    list.clear();
    if (tree->kind == Tree::Kind::null) return;
    if (tree->kind != Tree::Kind::list) return context_.wrong(*tree, join(key), "a list of mappings");
    std::vector<std::string>& paths = context_.positions.item_paths[join(key)];
    for (std::size_t i = 0; i < tree->items.size(); ++i) {
      const Tree& item = tree->items[i];
      paths.push_back(join(key) + "[" + (item.label.empty() ? std::to_string(i) : item.label) + "]");
      context_.positions.given[paths.back()] = {item.where, item.overridden};
      list.emplace_back();
      read_mapping(item, paths.back(), [&](auto& inner) { describe_members(inner, list.back()); });
    }
  }

  void report_unknown_keys() {
    for (const Tree::Key& key : map_.keys)
      if (std::find(known_.begin(), known_.end(), key.name) == known_.end()) {
        Tree shown;  // long garbage is shortened
        shown.kind = Tree::Kind::scalar;
        shown.text = key.name;
        const std::string name = key.name.empty() || key.name.size() > 60 ? shown.found() : key.name;
        context_.problems.add(key.where, join(name), "unknown key; " + advice(path_, key.name, known_));
      }
  }

 private:
  std::string join(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Tree* take(const char* key) {
    known_.emplace_back(key);
    const Tree* tree = map_.find(key);
    if (tree != nullptr) context_.positions.given[join(key)] = {tree->where, tree->overridden};
    return tree;
  }

  template <class F>
  void read_mapping(const Tree& tree, const std::string& path, F describe_members) {
    static const Tree kNothing;
    const bool good = tree.kind == Tree::Kind::map;
    Decoder inner(good ? tree : kNothing, path, context_);
    describe_members(inner);
    if (good) return inner.report_unknown_keys();
    std::string valid;
    for (const std::string& name : inner.known_) valid += (valid.empty() ? "" : ", ") + name;
    context_.wrong(tree, path, "a mapping (" + valid + ")");
  }

  template <class T>
  void read_value(const Tree& tree, const std::string& path, T& member, const Bounds& bounds) {
    std::string expected;
    if (!read(tree, member, bounds, expected)) context_.wrong(tree, path, expected);
  }
  template <class T>
  void read_value(const Tree& tree, const std::string& path, std::optional<T>& member, const Bounds& bounds) {
    member.reset();
    if (tree.kind == Tree::Kind::null) return;
    T inner{};
    std::string expected;
    if (read(tree, inner, bounds, expected))
      member = inner;
    else
      context_.wrong(tree, path, expected);
  }
  template <class T>
  void read_value(const Tree& tree, const std::string& path, std::vector<T>& member, const Bounds& bounds) {
    member.clear();
    if (tree.kind == Tree::Kind::null) return;
    T value{};
    std::string expected;
    if (tree.kind != Tree::Kind::list) {  // one value instead of a list of one
      if (!read(tree, value, bounds, expected))
        return context_.wrong(tree, path, expected + ", or a list of such");
      member.push_back(value);
      return;
    }
    for (std::size_t i = 0; i < tree.items.size(); ++i) {
      const Tree& item = tree.items[i];
      const bool good = read(item, value, bounds, expected);
      if (good && item.kind != Tree::Kind::null)
        member.push_back(value);
      else
        context_.wrong(
            item, path + "[" + std::to_string(i) + "]",
            expected + (item.kind == Tree::Kind::null ? " (in quotes, if this word is meant)" : ""));
    }
  }

  const Tree& map_;
  std::string path_;
  Context& context_;
  std::vector<std::string> known_;
};

}  // namespace

Config decode_config(const Tree& root, Positions& positions, Problems& problems) {
  Config config;
  Context context{positions, problems};
  Decoder decoder(root, "", context);
  keys::describe(decoder, config);
  decoder.report_unknown_keys();
  return config;
}

}  // namespace hf
