// Finds the place in `redlock run [OPTION...] RESOURCE [--] COMMAND [ARG...]` where the words for redlock end
// and the user's command begins.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace redlock::tool {

/// Returns true if `word` is an option of `app`, or begins with one as "-nv" and "--wait=5" do.
bool begins_with_option(const CLI::App& app, const std::string& word);

/// Returns true if the next word is the value of `word`. That is the case behind "-w" and "-nw", but not
/// behind "-w5", "-nv" and "--wait=5".
bool takes_next_word(const CLI::App& app, const std::string& word);

/// Removes the user's command from the end of `words` and returns it. The first word is the name of the
/// subcommand. The command is everything behind RESOURCE, which is the first of the other words that is
/// neither an option of `app` nor the value of one. Words in the command that look like options of redlock
/// belong to the command. A "--" in between is dropped.
std::vector<std::string> take_command(const CLI::App& app, std::vector<std::string>& words);

}  // namespace redlock::tool
