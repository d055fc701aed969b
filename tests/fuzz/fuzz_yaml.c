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

static void check_origin(void *arg, const struct effective_line *line)
{
    size_t *shown = arg;
    ASSERT(line->name[0] && line->value[0] && line->origin[0]);
    ++*shown;
}

static void check_tables(const struct retry_override *o)
{
    for (size_t i = 1; i < o->codes.n; i++)
        ASSERT(slice_cmp(o->codes.v[i - 1].code, o->codes.v[i].code) < 0);
    for (size_t i = 1; i < o->statuses.n; i++)
        ASSERT(o->statuses.v[i - 1].last < o->statuses.v[i].first);
}

/* Whatever a good configuration says: what comes of it for a request keeps within bounds. */
static void check_config(const struct config *c)
{
    struct aws_target target = {.is_aws = true, .service_name = SLICE("dynamodb")};
    struct request_facts facts = {.target = &target,
                                  .host = SLICE("dynamodb.us-east-1.amazonaws.com"),
                                  .method = HTTP_POST,
                                  .method_text = SLICE("POST")};
    struct effective e;
    struct problems warnings = {0};
    size_t shown = 0;
    target.service = aws_service_by_name(target.service_name);
    for (int aws = 0; aws < 2; aws++) {
        target.is_aws = aws;
        config_effective(c, &facts, &e);
        ASSERT(e.policy.max_attempts >= 1 && e.policy.max_attempts <= 100);
        ASSERT(e.policy.max_backoff_ns > 0 && e.policy.base_transient_ns >= 0);
        ASSERT(e.policy.mode == RETRY_MODE_OFF || aws || e.may_repeat ||
               (e.rule && rule_has(e.rule, profile)));
        ASSERT(!e.rule || !aws || !rule_has(e.rule, profile));
        if (e.policy.override)
            check_tables(e.policy.override);
        config_effective_show(c, &facts, &e, check_origin, &shown);
    }
    ASSERT(shown > 0);
    config_warn(c, &warnings);
    problems_fini(&warnings);
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
    if (c)
        check_config(c);
    config_free(c);
    settings_fini(&settings);
    problems_fini(&of_text);
    problems_fini(&of_values);
    return 0;
}
