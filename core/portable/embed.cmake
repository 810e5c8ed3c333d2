# Writes OUTPUT, a header with each of FILES as one string literal, for the compiler that runs on the user's machine.
# Their includes of each other are taken out: the strings are joined in order. Call: cmake -DOUTPUT=.. -DFILES=a;b -P.
set(text "// Written from core/portable by core/portable/embed.cmake.\n#pragma once\n\nnamespace busbw {\n")
foreach(file IN LISTS FILES)
  file(READ "${file}" content)
  string(REGEX REPLACE "#(pragma once|include \"[^\"]*\")\n" "" content "${content}")
  get_filename_component(name "${file}" NAME_WE)
  string(APPEND text "\ninline constexpr char ${name}_source[] = R\"cuda(${content})cuda\";\n")
endforeach()
string(APPEND text "\n}  // namespace busbw\n")
file(WRITE "${OUTPUT}" "${text}")
