// Starts the program under mpirun and reads what it leaves behind.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/checkpoint.hpp"
#include "table/table.hpp"

namespace hf::test {

struct Outcome {
  int code = -1;
  std::string output;  ///< stdout and stderr of all ranks
  double seconds = 0;
};

inline Outcome shell(const std::string& command) {
  Outcome o;
  const auto start = std::chrono::steady_clock::now();
  FILE* pipe = popen((command + " 2>&1 </dev/null").c_str(), "r");
  if (!pipe) return o;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe))
    o.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  o.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return o;
}

/// ranks = 0: the bare program, without mpirun.
inline Outcome hyperframes(int ranks, const std::string& arguments, const std::string& environment = "") {
  std::string command = "timeout 120 ";
  if (!environment.empty()) command = "env " + environment + " " + command;
  if (ranks > 0)
    command +=
        std::string(HF_MPIRUN) + " -np " + std::to_string(ranks) + " --map-by :OVERSUBSCRIBE --bind-to none ";
  return shell(command + HF_PROGRAM + " " + arguments);
}

/// A fresh directory that goes away with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hyperframes_e2e_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name) << text;
    return *this / name;
  }

 private:
  std::string path_;
};

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in, nullptr, false);
}

/// Every row of a checkpoint: (table, id) → record.
inline std::map<std::pair<std::string, RowId>, std::vector<float>> read_rows(const std::string& step_dir) {
  const Manifest manifest = read_manifest(step_dir);
  std::vector<ShardId> shards;
  for (std::uint32_t s = 0; s < manifest.num_shards; ++s) shards.emplace_back(s);
  std::vector<Table> tables;
  for (const TableSpec& t : manifest.tables) tables.emplace_back(t, manifest.num_shards, shards);
  std::vector<Table*> pointers;
  for (Table& t : tables) pointers.push_back(&t);
  std::map<std::pair<std::string, RowId>, std::vector<float>> rows;
  for (std::uint32_t s = 0; s < manifest.num_shards; ++s) {
    for (const ShardFile& f : manifest.shards)
      if (f.name == shard_file_name(ShardId{s})) read_shard(step_dir, f, pointers);
    for (const Table& t : tables)
      t.for_each_row(ShardId{s}, [&](RowId id, std::span<const float> record) {
        rows[{t.spec().name, id}].assign(record.begin(), record.end());
      });
  }
  return rows;
}

/// Rows "label I1…I13 C1…C26" whose clicks depend on I1 and C1.
inline std::string criteo_rows(std::size_t count, std::uint64_t seed) {
  std::string text;
  std::uint64_t state = seed * 7919 + 1;
  const auto next = [&] {
    return state = state * 6364136223846793005ULL + 1442695040888963407ULL,
           static_cast<unsigned>(state >> 33);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned a = next() % 20, c = next() % 30, noise = next() % 100;
    text += (a > 10) + (c % 3 == 0) + (noise > 70) >= 2 ? '1' : '0';
    text += '\t' + std::to_string(a);
    for (int k = 1; k < 13; ++k) text += next() % 9 == 0 ? "\t" : '\t' + std::to_string(next() % 50);
    for (int k = 0; k < 26; ++k)
      text += '\t' + (k == 0 ? "c" + std::to_string(c) : std::to_string(next() % 40));
    text += '\n';
  }
  return text;
}

}  // namespace hf::test
