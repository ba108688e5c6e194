// The error types of the API: what the outside world can cause, each with the exit code that a program should end with.
//
//   ConfigError 2   DataError 3   IoError, FormatError 4   MpiError 5   TooManyFailures 6   CheckFailed 70 (a bug)
//
// A message says what, expected and found, and where (file, row, key, rank and role).
// Threading: plain values.
#pragma once

#include <stdexcept>
#include <string>

namespace hf {

/// Exit codes of the program, documented in README.md.
enum class ExitCode : int {
  done = 0,
  config = 2,
  data = 3,
  io = 4,
  transport = 5,
  failures = 6,
  resumable = 75,
  bug = 70,
};

/// Base of every error that the outside world can cause; knows its exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// A configuration file, flag or environment variable is wrong (exit 2).
struct ConfigError : Error {
  explicit ConfigError(const std::string& what) : Error(ExitCode::config, what) {}
};
/// Input rows are wrong beyond what the configuration allows (exit 3).
struct DataError : Error {
  explicit DataError(const std::string& what) : Error(ExitCode::data, what) {}
};
/// The operating system refused to read or write (exit 4).
struct IoError : Error {
  explicit IoError(const std::string& what) : Error(ExitCode::io, what) {}
};
/// A file that this program writes (packed data, checkpoint, manifest) does not have the expected form (exit 4).
struct FormatError : Error {
  explicit FormatError(const std::string& what) : Error(ExitCode::io, what) {}
};
/// MPI or the transport failed, or a peer did not answer before the deadline (exit 5).
struct MpiError : Error {
  explicit MpiError(const std::string& what) : Error(ExitCode::transport, what) {}
};
/// More failures than the configuration allows, for instance rejected batches (exit 6).
struct TooManyFailures : Error {
  explicit TooManyFailures(const std::string& what) : Error(ExitCode::failures, what) {}
};

/// A bug in this program (exit 70). Thrown by HF_CHECK only.
class CheckFailed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace hf
