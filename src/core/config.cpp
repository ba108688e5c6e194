#include "core/config.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/config_check.hpp"
#include "core/config_decode.hpp"
#include "core/suggest.hpp"
#include "core/yaml_tree.hpp"

namespace hf {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFileBytes = 4U << 20;

/// Reports and returns nullopt where the file cannot be read.
std::optional<std::string> read_file(const std::string& path, Problems& problems) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    problems.add(path, "", "is a directory, expected a configuration file");
    return std::nullopt;
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    problems.add(path, "", std::string("cannot be read: ") + std::strerror(errno != 0 ? errno : EIO));
    return std::nullopt;
  }
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) {
    problems.add(path, "", "cannot be read to its end");
    return std::nullopt;
  }
  if (text.size() > kMaxFileBytes) {
    problems.add(path, "",
                 "is longer than " + std::to_string(kMaxFileBytes) + " bytes; this is not a configuration");
    return std::nullopt;
  }
  return text;
}

/// Mappings are merged key by key, everything else is replaced.
void merge(Tree& into, Tree from) {
  if (into.kind != Tree::Kind::map || from.kind != Tree::Kind::map) {
    into = std::move(from);
    return;
  }
  for (std::size_t i = 0; i < from.keys.size(); ++i) {
    if (Tree* there = into.find(from.keys[i].name)) {
      merge(*there, std::move(from.items[i]));
    } else {
      into.keys.push_back(std::move(from.keys[i]));
      into.items.push_back(std::move(from.items[i]));
    }
  }
}

void merge_model_config(Tree& root, const Override& source, Problems& problems) {
  const std::optional<Tree> path = parse_yaml(source.value, source.origin, false, problems);
  if (!path) return;
  if (path->kind != Tree::Kind::scalar || path->text.empty()) {
    problems.add(source.origin, "model_config", "expected a path, found " + path->found());
    return;
  }
  const std::optional<std::string> text = read_file(path->text, problems);
  if (!text) return;
  std::optional<Tree> tree = parse_yaml(*text, path->text, true, problems);
  if (!tree) return;
  if (tree->kind != Tree::Kind::map) {
    problems.add(tree->where, "", "expected a mapping (model, embedding, optimizer), found " + tree->found());
    return;
  }
  for (std::size_t i = tree->keys.size(); i-- > 0;) {
    const Tree::Key key = tree->keys[i];
    if (key.name == "model" || key.name == "embedding" || key.name == "optimizer") continue;
    problems.add(key.where, key.name,
                 "a model configuration has the keys model, embedding and optimizer only");
    tree->erase(key.name);
  }
  merge(root, std::move(*tree));
}

/// A list item by its index or by its name.
Tree* find_item(Tree& list, const std::string& component) {
  for (Tree& item : list.items)
    if (const Tree* name = item.kind == Tree::Kind::map ? item.find("name") : nullptr;
        name && name->text == component)
      return &item;
  std::size_t index = 0;
  if (component.empty() || component.size() > 9) return nullptr;
  for (const char c : component) {
    if (c < '0' || c > '9') return nullptr;
    index = index * 10 + static_cast<std::size_t>(c - '0');
  }
  return index < list.items.size() ? &list.items[index] : nullptr;
}

void apply_override(Tree& root, const Override& change, Problems& problems) {
  const auto bad = [&](const std::string& message) { problems.add(change.origin, change.key, message); };
  Problems syntax;
  std::optional<Tree> value = parse_yaml(change.value, change.origin, false, syntax);
  if (!value || !syntax.empty())
    return bad("the value \"" + change.value + "\" is no YAML text; put it in quotes (" +
               syntax.lines().front() + ")");
  Tree* at = &root;
  for (std::size_t begin = 0; begin <= change.key.size();) {
    const std::size_t end = std::min(change.key.find('.', begin), change.key.size());
    const std::string component = change.key.substr(begin, end - begin);
    const std::string around = change.key.substr(0, begin == 0 ? 0 : begin - 1);
    if (component.empty()) return bad("expected a key like train.batch_size");
    if (at->kind == Tree::Kind::list) {
      Tree* const item = find_item(*at, component);
      if (item == nullptr) {
        std::vector<std::string> names;
        for (const Tree& i : at->items)
          if (const Tree* name = i.kind == Tree::Kind::map ? i.find("name") : nullptr)
            names.push_back(name->text);
        const std::string near = nearest_name(component, names);
        return bad(around + " has no item \"" + component + "\"" +
                   (near.empty() ? "" : "; did you mean " + near + "?"));
      }
      at = item;
    } else if (at->kind == Tree::Kind::scalar) {
      return bad(around + " is " + at->found() + " (" + at->where + "), not a mapping");
    } else {
      at->kind = Tree::Kind::map;
      if (Tree* const there = at->find(component)) {
        at = there;
      } else {
        Tree fresh;
        fresh.where = change.origin;
        fresh.overridden = true;
        at->keys.push_back({component, change.origin});
        at->items.push_back(std::move(fresh));
        at = &at->items.back();
      }
    }
    begin = end + 1;
  }
  std::string label = at->label;
  *at = std::move(*value);
  at->label = std::move(label);
}

std::string absolute(const fs::path& base, const std::string& path) {
  return path.empty() ? path : fs::absolute(base / path).lexically_normal().string();
}

void make_paths_absolute(Config& config, const Positions& positions) {
  const fs::path file_dir = fs::absolute(positions.source).parent_path();
  const auto given = positions.given.find("data.data_dir");
  const bool typed =
      given != positions.given.end() && given->second.overridden;  // in a shell: relative to where it is
  DataConfig& data = config.data;
  data.data_dir = data.data_dir.empty() ? file_dir.lexically_normal().string()
                                        : absolute(typed ? fs::path() : file_dir, data.data_dir);
  for (std::vector<std::string>* files : {&data.train, &data.validation, &data.test})
    for (std::string& file : *files) file = absolute(data.data_dir, file);
  data.statistics = absolute(data.data_dir, data.statistics);
  config.workdir = absolute("", config.workdir);
  config.checkpoint_dir = absolute("", config.checkpoint_dir);
}

Config assemble(std::optional<Tree> root, const std::string& source, const std::vector<Override>& overrides,
                Problems& problems) {
  if (root && root->kind != Tree::Kind::map) {
    problems.add(root->where, "",
                 root->kind == Tree::Kind::null ? "the configuration is empty"
                                                : "expected a mapping of keys, found " + root->found());
    root.reset();
  }
  if (!root) {
    problems.throw_if_any();
    return {};
  }
  const auto model_config = std::find_if(overrides.rbegin(), overrides.rend(),
                                         [](const Override& o) { return o.key == "model_config"; });
  if (model_config != overrides.rend()) merge_model_config(*root, *model_config, problems);
  expand_features(*root, problems);
  for (const Override& change : overrides) {
    if (change.key == "model_config") continue;
    apply_override(*root, change, problems);
    expand_features(*root, problems);
  }

  Positions positions;
  positions.source = source;
  Config config = decode_config(*root, positions, problems);
  check_config(config, positions, problems);
  problems.throw_if_any();
  if (config.data.csv.delimiter == "tab" || config.data.csv.delimiter == "\\t")
    config.data.csv.delimiter = "\t";
  make_paths_absolute(config, positions);
  return config;
}

}  // namespace

Config load_config(const std::string& path, const std::vector<Override>& overrides) {
  Problems problems;
  const std::optional<std::string> text = read_file(path, problems);
  std::optional<Tree> root;
  if (text) root = parse_yaml(*text, path, true, problems);
  return assemble(std::move(root), path, overrides, problems);
}

Config parse_config(const std::string& yaml, const std::string& source,
                    const std::vector<Override>& overrides) {
  Problems problems;
  std::optional<Tree> root = parse_yaml(yaml, source, true, problems);
  return assemble(std::move(root), source, overrides, problems);
}

std::vector<Override> environment_overrides(const char* const* environ_block) {
  std::vector<Override> overrides;
  if (environ_block == nullptr) return overrides;
  for (; *environ_block != nullptr; ++environ_block) {
    const std::string variable = *environ_block;
    const std::size_t equals = variable.find('=');
    if (!variable.starts_with("HF_") || equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals);
    // Others use the prefix too: this program's log level and tests, and the Hugging Face tools on many
    // machines.
    constexpr std::array kForeign = {"HF_TEST_", "HF_HUB_", "HF_XET_", "HF_DATASETS_"};
    constexpr std::array kForeignNames = {"HF_LOG_LEVEL",    "HF_HOME",     "HF_TOKEN",
                                          "HF_TOKEN_PATH",   "HF_ENDPOINT", "HF_ASSETS_CACHE",
                                          "HF_MODULES_CACHE"};
    if (std::any_of(kForeign.begin(), kForeign.end(), [&](const char* p) { return name.starts_with(p); }) ||
        std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end())
      continue;
    std::string key;
    for (std::size_t i = 3; i < name.size(); ++i) {
      if (name.compare(i, 2, "__") == 0) {
        key += '.';
        ++i;
      } else {
        key += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
      }
    }
    overrides.push_back({key, variable.substr(equals + 1), name});
  }
  // The order of an environment is arbitrary; the messages' order is not.
  std::stable_sort(overrides.begin(), overrides.end(),
                   [](const Override& a, const Override& b) { return a.origin < b.origin; });
  return overrides;
}

}  // namespace hf
