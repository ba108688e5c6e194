// A YAML document as a plain tree in which every value knows where it came from, and the list of problems
// found in it. yaml-cpp does the parsing; the tree adds what a configuration needs: positions of keys,
// duplicate keys as problems, overrides mixed into the same tree, and bounds on size and depth (an alias bomb
// ends as a problem).
// Threading: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hf {

/// Collects every problem, so that they are reported in one list.
class Problems {
 public:
  /// `where` is "file:line" or the origin of an override; `key` may be empty. The same line is kept once.
  void add(const std::string& where, const std::string& key, const std::string& message);
  bool empty() const noexcept { return lines_.empty(); }
  const std::vector<std::string>& lines() const noexcept { return lines_; }
  /// Throws: ConfigError with all problems, one a line, when there is any.
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
};

struct Tree {
  enum class Kind : unsigned char { null, scalar, list, map };
  struct Key {
    std::string name;
    std::string where;
  };

  Kind kind = Kind::null;
  std::string where;        ///< of the key in a mapping, of the value itself in a list
  bool overridden = false;  ///< from a flag or the environment
  std::string label;        ///< how messages call this list item; "" = its index
  std::string text;         ///< scalar
  std::vector<Key> keys;    ///< map: one per item
  std::vector<Tree> items;  ///< list, map

  /// Requires: a map. nullptr where the key is absent.
  Tree* find(const std::string& key) noexcept;
  const Tree* find(const std::string& key) const noexcept { return const_cast<Tree*>(this)->find(key); }
  void erase(const std::string& key);
  /// "nothing", "a list", "a mapping" or the quoted text, shortened.
  std::string found() const;
};

/// Parses one document. With `lines` a position reads "source:line", otherwise "source" (an override's
/// origin). nullopt where the text is no YAML; whatever is wrong is added to `problems`.
std::optional<Tree> parse_yaml(const std::string& text, const std::string& source, bool lines,
                               Problems& problems);

}  // namespace hf
