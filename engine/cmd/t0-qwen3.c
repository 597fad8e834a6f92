/*
 * t0-qwen3 - Qwen3 models: run, measure, judge.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/cmd.h"

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static struct qwen_cmd c = {
	.context = 4096, .chunk = 512, .tokens = 128, .samples = 6,
	.temperature = NAN, .top_p = NAN, .min_p = NAN, .penalty = NAN,
	.top_k = UINT64_MAX, .prefill = "128", .decode = "32", .batch = "1",
	.shape = "tiny", .shards = 1, .stop = &stop,
};

/*
 * Weights are read through a mapping: where a file loses its end meanwhile, or
 * its disk fails, there is no call that could return an error.
 */
static void on_bus(int sig)
{
	static const char text[] =
		": a file of the model became shorter, or cannot be read any "
		"more, while it was mapped\n";
	const char *part[] = { "t0-qwen3: ", c.model ? c.model : "", text };

	(void)sig;
	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (write(STDERR_FILENO, part[i], strlen(part[i])) < 0)
			break;
	_exit(EXIT_TROUBLE);
}

/* The first signal ends what runs in good order, a second one at once. */
static void signals_init(void)
{
	const struct sigaction end = { .sa_handler = on_signal,
				       .sa_flags = SA_RESTART | SA_RESETHAND };
	const struct sigaction bus = { .sa_handler = on_bus };

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGBUS, &bus, NULL);
}

static const struct {
	const char *name;
	int (*run)(struct qwen_cmd *c, struct err *e);
} command[] = {
	{ "generate", qwen_cmd_generate }, { "bench", qwen_cmd_bench },
	{ "eval", qwen_cmd_eval },	   { "logits", qwen_cmd_logits },
	{ "check", qwen_cmd_check },	   { "info", qwen_cmd_info },
	{ "make", qwen_cmd_make },	   { "quantize", qwen_cmd_quantize },
	{ "forecast", qwen_cmd_forecast },
};

static void command_wrong(int argc, char **argv, int first, struct err *e)
{
	struct buf all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(command); i++)
		buf_printf(&all, "%s%s", i ? ", " : "", command[i].name);
	if (first + 1 < argc)
		err_set(e, ERR_USAGE, "got \"%s\" behind the command; wanted "
			"options only", argv[first + 1]);
	else
		err_set(e, ERR_USAGE, "got the command \"%s\"; wanted %s",
			first < argc ? argv[first] : "", all.data);
	buf_fini(&all);
}

static int run(int argc, char **argv, int first, struct err *e)
{
	if (c.json && c.csv) {
		err_set(e, ERR_USAGE, "--json and --csv exclude each other");
		return EXIT_TROUBLE;
	}
	for (size_t i = 0; first < argc && i < ARRAY_SIZE(command); i++)
		if (strcmp(command[i].name, argv[first]) == 0 &&
		    (first + 1 == argc ||
		     command[i].run == qwen_cmd_quantize)) {
			c.operand = argv + first + 1;
			c.n_operands = argc - first - 1;
			return command[i].run(&c, e);
		}
	command_wrong(argc, argv, first, e);
	return EXIT_TROUBLE;
}

static const struct cli_opt opt[] = {
	{ "model", 'm', CLI_STR, &c.model, "DIR",
	  "folder of a Hugging Face Qwen3 model" },
	{ "backend", 0, CLI_STR, &c.backend, "NAME", "cpu (default) or gpu" },
	{ "device", 0, CLI_STR, &c.device, "DEV",
	  "gpu: soft, kfd, kfd:N (default: $T0_DEVICE, else a GPU, else "
	  "soft)" },
	{ "weights", 'w', CLI_STR, &c.weights, "TYPE",
	  "convert to f32, f16, bf16, int8 or int4 (default: as "
	  "stored); make: what to write (bf16)" },
	{ "copy", 0, CLI_FLAG, &c.copy, NULL,
	  "copy weights into large pages instead of mapping them" },
	{ "cache", 0, CLI_STR, &c.cache, "TYPE",
	  "keys and values in f32 (default), f16, bf16 or int8" },
	{ "threads", 't', CLI_U64, &c.threads, "N",
	  "default: one for each processor" },
	{ "context", 0, CLI_U64, &c.context, "N",
	  "positions of the cache (default 4096)" },
	{ "chunk", 0, CLI_U64, &c.chunk, "N",
	  "tokens of a prompt in one pass (default 512)" },
	{ "prompt", 'p', CLI_STR, &c.prompt, "TEXT", "the prompt" },
	{ "prompt-file", 'f', CLI_STR, &c.prompt_file, "FILE",
	  "the prompt, from a file; - is stdin" },
	{ "messages", 0, CLI_STR, &c.messages, "FILE",
	  "a conversation as JSON: [{\"role\", \"content\"}]" },
	{ "tools", 0, CLI_STR, &c.tools, "FILE",
	  "with --messages: the tools as JSON" },
	{ "ids", 0, CLI_STR, &c.ids, "N,N...",
	  "tokens instead of a prompt; needs no tokenizer" },
	{ "chat", 0, CLI_FLAG, &c.chat, NULL, "the prompt is a user's turn" },
	{ "system", 0, CLI_STR, &c.system, "TEXT",
	  "with --chat: the system's turn" },
	{ "no-think", 0, CLI_FLAG, &c.no_think, NULL,
	  "with --chat or --messages: thinking off" },
	{ "plain", 0, CLI_FLAG, &c.plain, NULL,
	  "special tokens in the prompt are text" },
	{ "tokens", 'n', CLI_U64, &c.tokens, "N",
	  "generate: at most so many (default 128)" },
	{ "greedy", 'g', CLI_FLAG, &c.greedy, NULL,
	  "always the likeliest token" },
	{ "temperature", 0, CLI_F64, &c.temperature, "X",
	  "0 is greedy (default: as the model says)" },
	{ "top-k", 0, CLI_U64, &c.top_k, "N", "only the N likeliest" },
	{ "top-p", 0, CLI_F64, &c.top_p, "P",
	  "only the likeliest that make up P" },
	{ "min-p", 0, CLI_F64, &c.min_p, "P",
	  "only those at least P times as likely as the likeliest" },
	{ "repetition-penalty", 0, CLI_F64, &c.penalty, "X", "1 is none" },
	{ "seed", 0, CLI_U64, &c.seed, "N",
	  "of sampling, of bench's prompt, of make's weights" },
	{ "prefill", 0, CLI_STR, &c.prefill, "SWEEP",
	  "bench: prompt lengths (128)" },
	{ "decode", 0, CLI_STR, &c.decode, "SWEEP",
	  "bench: decoded tokens (32)" },
	{ "batch", 0, CLI_STR, &c.batch, "SWEEP",
	  "bench: sequences decoded at once (1)" },
	{ "samples", 0, CLI_U64, &c.samples, "N", "bench: repetitions (6)" },
	{ "fresh-process", 0, CLI_FLAG, &c.fresh, NULL,
	  "bench: a process of its own for every sample" },
	{ "one", 0, CLI_STR, &c.one, "PHASE",
	  "bench: only print the seconds of one prefill or decode" },
	{ "db", 0, CLI_STR, &c.db, "FILE",
	  "bench: database (default: $T0_DB, else t0.db)" },
	{ "all", 0, CLI_FLAG, &c.all, NULL,
	  "logits: of every token, not only the last" },
	{ "to", 0, CLI_STR, &c.to, "TYPE",
	  "quantize: int8 or int4, in groups of 32" },
	{ "shape", 0, CLI_STR, &c.shape, "NAME",
	  "make, forecast: tiny, 0.6b, 1.7b, 4b, 8b, 14b or 32b" },
	{ "tokenizer", 0, CLI_STR, &c.tokenizer, "DIR",
	  "make: copy the tokenizer of this folder" },
	{ "shards", 0, CLI_U64, &c.shards, "N",
	  "make: files to spread the weights over (1)" },
	{ "limits", 0, CLI_STR, &c.limits, "FILE",
	  "check: lines \"name value\" that replace its limits" },
	{ "json", 0, CLI_FLAG, &c.json, NULL, "print JSON" },
	{ "csv", 0, CLI_FLAG, &c.csv, NULL, "print CSV" },
	{ "output", 'o', CLI_STR, &c.output, "FILE",
	  "write there instead of to stdout" },
	{ "out", 0, CLI_STR, &c.output, "FILE", "the same" },
	{ "quiet", 'q', CLI_FLAG, &c.quiet, NULL,
	  "no progress and no remarks on stderr" },
	{ 0 }
};

static const struct cli_tool tool = {
	"t0-qwen3", "run, measure and judge Qwen3 language models",
	"generate --model DIR [options]\nbench --model DIR [options]\n"
	"eval --model DIR [options]\n"
	"logits --model DIR --ids N,N... --out FILE [options]\n"
	"check --model DIR [options]\ninfo --model DIR [options]\n"
	"make --model DIR [--shape NAME] [options]\n"
	"quantize --to TYPE FROM INTO [options]\n"
	"forecast [--model DIR | --shape NAME] [options]",
	opt,
	"forecast simulates the gfx1100 backend's packets for --batch tokens "
	"behind\n--context - 1 others and for prompts of --prefill tokens, "
	"and needs no weights.\n\n"
	"logits writes float32, little-endian, [vocabulary] for the "
	"last token or\n[tokens][vocabulary] with --all.  check judges "
	"the coherence of a text.\n\n"
	"Exit: 0 done, 1 not coherent, 2 trouble, 3 the model's output "
	"is broken.",
};

int main(int argc, char **argv)
{
	struct err e = { 0 };
	bool done = false;
	int first = 0, code;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(tool.name, &e);
	if (done)
		return EXIT_YES;
	c.argc = argc;
	c.argv = argv;
	signals_init();
	code = run(argc, argv, first, &e);
	if (e.code)
		err_report(tool.name, &e);
	else if (!stdout_check(&e))
		code = err_report(tool.name, &e);
	return code;
}
