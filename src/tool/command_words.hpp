// Where the words of `redlock run [OPTION...] RESOURCE [--] COMMAND [ARG...]` turn from ours into the
// command's.
#pragma once

#include "arguments.hpp"

#include <string>
#include <vector>

namespace redlock::tool {

/// Whether `word` is an option of `arguments`, or begins with one as "-nv" and "--wait=5" do.
bool begins_with_option(const Arguments& arguments, const std::string& word);

/// Whether the word behind `word` is its value: behind "-w" and "-nw", but not behind "-w5", "-nv" and
/// "--wait=5".
bool takes_next_word(const Arguments& arguments, const std::string& word);

/// Takes the command off the end of `words`: all that stands behind RESOURCE, which is the first word that is
/// neither an option of `arguments` nor its value. What looks like our options in there is the command's own.
/// A "--" in between is dropped.
std::vector<std::string> take_command(const Arguments& arguments, std::vector<std::string>& words);

}  // namespace redlock::tool
