/* YAML text -> settings -> config. Either a config or problems, never both, and every problem one
 * line. */
#include "core/base/attr.h"
#include "io/sources/yamlsrc.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void discard(void *arg, const char *text)
{
    size_t *shown = arg;
    *shown += strlen(text);
}

static void check_problems(const struct problems *p, bool expected)
{
    ASSERT((p->n > 0) == expected);
    for (size_t i = 0; i < p->n; i++) {
        ASSERT(p->v[i].text[0]);
        ASSERT(!strpbrk(p->v[i].text, "\r\n\033"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings;
    struct problems of_text = {0}, of_values = {0};
    size_t shown = 0;
    settings_init(&settings);
    bool read = yamlsrc_text(slice_of((const char *)data, size), "fuzz.yaml", &settings, &of_text);
    check_problems(&of_text, !read);
    ASSERT(settings.n <= SETTINGS_MAX);
    struct config *c = config_build(&settings, "/state", &of_values);
    check_problems(&of_values, c == NULL);
    config_show(&settings, discard, &shown);
    ASSERT(shown > 0);
    config_free(c);
    settings_fini(&settings);
    problems_fini(&of_text);
    problems_fini(&of_values);
    return 0;
}
