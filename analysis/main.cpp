// The `gradwire` program: everything it does is in cli.h.
#include <unistd.h>

#include <iostream>

#include "analysis/cli.h"
#include "analysis/output_file.h"

int main(int argc, char** argv) {
  gradwire::exit_on_interrupt();
  return gradwire::run_command_line(
      {argv + 1, argv + argc},
      {.out = std::cout, .err = std::cerr, .err_is_terminal = isatty(STDERR_FILENO) == 1});
}
