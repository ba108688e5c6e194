#include <string>
#include <utility>
#include <vector>

#include "core/config_decode.hpp"

namespace hf {
namespace {

constexpr std::size_t kMaxRange = 10000;

/// "C1..C26" → C1, …, C26; empty where the text has another form.
std::vector<std::string> range_names(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {};
  const auto split = [](const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    return std::pair{name.substr(0, digits), name.substr(digits)};
  };
  const auto [prefix, first] = split(text.substr(0, dots));
  const auto [prefix2, last] = split(text.substr(dots + 2));
  if (prefix != prefix2 || first.empty() || last.empty() || last.size() > 9 || first.size() > 9) return {};
  const unsigned long a = std::stoul(first), b = std::stoul(last);
  if (a > b || b - a >= kMaxRange) return {};
  std::vector<std::string> names;
  for (unsigned long i = a; i <= b; ++i) {
    std::string number = std::to_string(i);
    if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
    names.push_back(prefix + number);
  }
  return names;
}

Tree text_tree(const std::string& text, const Tree& like) {
  Tree tree;
  tree.kind = Tree::Kind::scalar;
  tree.text = text;
  tree.where = like.where;
  tree.overridden = like.overridden;
  return tree;
}

void add_named(std::vector<Tree>& out, const std::string& name, Tree item, const std::string& label) {
  item.keys.insert(item.keys.begin(), Tree::Key{"name", item.where});
  item.items.insert(item.items.begin(), text_tree(name, item));
  item.label = label;
  out.push_back(std::move(item));
}

void expand_list(Tree& list, const std::string& path, Problems& problems) {
  if (list.kind == Tree::Kind::scalar) {
    Tree one = std::move(list);
    list = Tree{};
    list.kind = Tree::Kind::list;
    list.where = one.where;
    list.overridden = one.overridden;
    list.items.push_back(std::move(one));
  }
  if (list.kind != Tree::Kind::list) return;
  std::vector<Tree> out;
  for (Tree& item : list.items) {
    if (item.kind == Tree::Kind::scalar) {
      Tree feature;
      feature.kind = Tree::Kind::map;
      feature.where = item.where;
      feature.overridden = item.overridden;
      add_named(out, item.text, std::move(feature), "");
      continue;
    }
    const Tree* range = item.kind == Tree::Kind::map ? item.find("range") : nullptr;
    if (range == nullptr) {
      out.push_back(std::move(item));
      continue;
    }
    const std::string text = range->text;
    const std::vector<std::string> names = range_names(text);
    if (names.empty())
      problems.add(range->where, path + ".range",
                   "expected \"FIRST..LAST\" with rising numbers, for instance \"C1..C26\" (at most " +
                       std::to_string(kMaxRange) + " names), found " + range->found());
    for (const char* key : {"name", "column"})
      if (const Tree* given = item.find(key))
        problems.add(given->where, path + "." + key,
                     "cannot be given together with range, which names the features");
    item.erase("range");
    item.erase("name");
    item.erase("column");
    for (const std::string& name : names) add_named(out, name, item, text);
  }
  list.items = std::move(out);
}

}  // namespace

void expand_features(Tree& root, Problems& problems) {
  Tree* features = root.kind == Tree::Kind::map ? root.find("features") : nullptr;
  if (features == nullptr || features->kind != Tree::Kind::map) return;
  if (Tree* list = features->find("numeric")) expand_list(*list, "features.numeric", problems);
  if (Tree* list = features->find("categorical")) expand_list(*list, "features.categorical", problems);
}

}  // namespace hf
