# SPDX-License-Identifier: BSD-2-Clause
# Checks that every folder with C programs has alike. Before it is included: TOP, HERE, BUILD, CC, CLANG, COMMON, SOURCES and HEADERS.

analyze:
	@for f in $(filter $(HERE)/src/%,$(SOURCES)); do \
	    $(CLANG) --analyze --analyzer-output text -Xanalyzer -analyzer-werror $(COMMON) $$f || exit 1; done
	@echo "analyze: clean"

# Without inlining and with a section for each function, the linker reports unused functions.
$(BUILD)/sections/%.o: $(HERE)/src/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(COMMON) -O0 -ffunction-sections -c -o $@ $<
