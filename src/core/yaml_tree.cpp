#include "core/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "core/error.hpp"

namespace hf {
namespace {

constexpr std::size_t kMaxProblems = 100;  // more lines than that help nobody
constexpr std::size_t kMaxNodes = 200000;
constexpr std::size_t kMaxDepth = 32;

struct TooBig {
  std::size_t line;
};

/// Builds the tree from the parser's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string source, bool lines, Problems& problems)
      : source_(std::move(source)), lines_(lines), problems_(problems) {}

  Tree take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(Tree::Kind::null, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    Tree tree = make(Tree::Kind::scalar, mark);
    tree.text = value;
    add(std::move(tree), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      problems_.add(where(mark), "", "an alias inside of what it stands for");
      add(make(Tree::Kind::null, mark), YAML::NullAnchor);
      return;
    }
    Tree copy = known->second;
    count(copy, mark);
    copy.where = where(mark);
    add(std::move(copy), YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Tree::Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Tree::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Tree tree;
    YAML::anchor_t anchor;
    std::optional<Tree::Key> key;  // read, its value not yet
    bool drop_value = false;
  };

  std::string where(const YAML::Mark& mark) const {
    return lines_ ? source_ + ":" + std::to_string(std::max(mark.line, 0) + 1) : source_;
  }
  Tree make(Tree::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) throw TooBig{static_cast<std::size_t>(std::max(mark.line, 0)) + 1};
    Tree tree;
    tree.kind = kind;
    tree.where = where(mark);
    tree.overridden = !lines_;
    return tree;
  }
  void count(const Tree& tree, const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) throw TooBig{static_cast<std::size_t>(std::max(mark.line, 0)) + 1};
    for (const Tree& item : tree.items) count(item, mark);
  }
  void open(Tree::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) throw TooBig{static_cast<std::size_t>(std::max(mark.line, 0)) + 1};
    stack_.push_back({make(kind, mark), anchor, std::nullopt, false});
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(frame.tree), frame.anchor);
  }
  void add(Tree tree, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = tree;
    if (stack_.empty()) {
      root_ = std::move(tree);
      return;
    }
    Frame& top = stack_.back();
    if (top.tree.kind == Tree::Kind::list) {
      top.tree.items.push_back(std::move(tree));
    } else if (!top.key) {
      top.key = Tree::Key{tree.text, tree.where};
      top.drop_value = true;
      if (tree.kind != Tree::Kind::scalar) {
        problems_.add(tree.where, "", "a key must be a text, found " + tree.found());
      } else if (const auto first = std::find_if(top.tree.keys.begin(), top.tree.keys.end(),
                                                 [&](const Tree::Key& k) { return k.name == tree.text; });
                 first != top.tree.keys.end()) {
        problems_.add(tree.where, tree.text, "duplicate key, first given at " + first->where);
      } else {
        top.drop_value = false;
      }
    } else {
      if (!top.drop_value) {
        tree.where = top.key->where;
        top.tree.keys.push_back(std::move(*top.key));
        top.tree.items.push_back(std::move(tree));
      }
      top.key.reset();
    }
  }

  std::string source_;
  bool lines_;
  Problems& problems_;
  Tree root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Tree> anchors_;
  std::size_t nodes_ = 0;
};

/// yaml-cpp takes control bytes for ends of input and replaces broken UTF-8 silently: both are refused before
/// it reads. Returns the 1-based line of the first such byte and what it is, or nullopt.
std::optional<std::pair<std::size_t, std::string>> first_bad_byte(const std::string& text) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n') ++line;
    if (c < 0x80) {
      if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
        return {{line, "control byte " + std::to_string(c) + "; this is not a YAML text"}};
      ++i;
      continue;
    }
    const std::size_t more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
    bool good = more > 0 && c < 0xf5 && i + more < text.size();
    for (std::size_t k = 1; good && k <= more; ++k)
      good = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    if (!good) return {{line, "not UTF-8; this is not a YAML text"}};
    i += more + 1;
  }
  return std::nullopt;
}

}  // namespace

void Problems::add(const std::string& where, const std::string& key, const std::string& message) {
  std::string line = where + ": " + (key.empty() ? "" : key + ": ") + message;
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(std::move(line));
}

void Problems::throw_if_any() const {
  if (lines_.empty()) return;
  std::string text =
      "configuration: " + std::to_string(lines_.size()) + (lines_.size() == 1 ? " problem" : " problems");
  for (std::size_t i = 0; i < std::min(lines_.size(), kMaxProblems); ++i) text += "\n  " + lines_[i];
  if (lines_.size() > kMaxProblems)
    text += "\n  … and " + std::to_string(lines_.size() - kMaxProblems) + " more";
  throw ConfigError(text);
}

Tree* Tree::find(const std::string& key) noexcept {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].name == key) return &items[i];
  return nullptr;
}

void Tree::erase(const std::string& key) {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].name == key) {
      keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
      items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
}

std::string Tree::found() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::list:
      return "a list";
    case Kind::map:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  constexpr std::size_t kLongest = 60;
  if (text.size() <= kLongest) return '"' + text + '"';
  std::size_t cut = kLongest;  // not inside of a UTF-8 sequence
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return '"' + text.substr(0, cut) + "…\"";
}

std::optional<Tree> parse_yaml(const std::string& text, const std::string& source, bool lines,
                               Problems& problems) {
  const auto at = [&](std::size_t line) { return lines ? source + ":" + std::to_string(line) : source; };
  if (const auto bad = first_bad_byte(text)) {
    problems.add(at(bad->first), "", bad->second);
    return std::nullopt;
  }
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    Builder builder(source, lines, problems);
    if (!parser.HandleNextDocument(builder)) {
      Tree nothing;
      nothing.where = at(1);
      nothing.overridden = !lines;
      return nothing;
    }
    Tree root = builder.take();
    Builder second(source, lines, problems);
    if (parser.HandleNextDocument(second))
      problems.add(second.take().where, "", "more than one YAML document; a configuration is one");
    return root;
  } catch (const YAML::Exception& e) {
    problems.add(at(static_cast<std::size_t>(std::max(e.mark.line, 0)) + 1), "", "YAML syntax: " + e.msg);
  } catch (const TooBig& e) {
    problems.add(at(e.line), "", "too large or too deeply nested for a configuration");
  }
  return std::nullopt;
}

}  // namespace hf
