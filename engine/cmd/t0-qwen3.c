/*
 * engine/cmd/t0-qwen3.c - Qwen3 models: run, measure, judge.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/cmd.h"
#include "results/db/results.h"

static struct qwen_cmd c = {
	.context = 4096, .chunk = 512, .tokens = 128, .samples = 6,
	.temperature = NAN, .top_p = NAN, .min_p = NAN, .penalty = NAN,
	.top_k = UINT64_MAX, .prefill = "128", .decode = "32", .batch = "1",
	.shape = "tiny", .shards = 1,
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
static bool catch_signals(struct cmd *cmd, struct err *e)
{
	const struct sigaction bus = { .sa_handler = on_bus };

	(void)e;
	sigaction(SIGBUS, &bus, NULL);
	c.stop = cmd_catch_signals(cmd);
	return true;
}

#define FLAGS .flags = CMD_TABLE | CMD_QUIET

static const struct cmd_spec commands[] = {
	{ "generate", "--model DIR", "text from a prompt, as it comes",
	  qwen_cmd_generate, 0, 0, FLAGS },
	{ "bench", "--model DIR", "tokens per second, into the database",
	  qwen_cmd_bench, 0, 0, FLAGS },
	{ "eval", "--model DIR", "perplexity of a text", qwen_cmd_eval, 0, 0,
	  FLAGS },
	{ "logits", "--model DIR --ids N,N... --out FILE",
	  "what the model says about tokens", qwen_cmd_logits, 0, 0,
	  .flags = CMD_OUTPUT | CMD_QUIET,
	  .notes = "It writes float32, little-endian, [vocabulary] for the "
		   "last token or [tokens][vocabulary] with --all." },
	{ "check", "--model DIR", "is a text coherent?  exit 1 if not",
	  qwen_cmd_check, 0, 0, FLAGS },
	{ "info", "--model DIR", "what a model consists of", qwen_cmd_info, 0,
	  0, FLAGS },
	{ "make", "--model DIR [--shape NAME]", "a model of random weights",
	  qwen_cmd_make, 0, 0, .flags = CMD_QUIET },
	{ "quantize", "--to TYPE FROM INTO",
	  "a smaller copy of a model, and what it costs", qwen_cmd_quantize,
	  2, 2, FLAGS },
	{ "forecast", "[--model DIR | --shape NAME]",
	  "tokens per second of a card, simulated", qwen_cmd_forecast, 0, 0,
	  FLAGS,
	  .notes = "It simulates the gfx1100 backend's packets for --batch "
		   "tokens behind --context - 1 others and for prompts of "
		   "--prefill tokens, and needs no weights." },
	{ 0 },
};

#define RUNS "generate bench eval logits quantize"

static const struct cli_opt options[] = {
	CLI_OF("generate bench eval logits check info make forecast"),
	{ "model", 'm', CLI_STR, &c.model, "DIR",
	  "folder of a Hugging Face Qwen3 model" },
	CLI_OF(RUNS " info"),
	{ "backend", 0, CLI_STR, &c.backend, "NAME", "cpu (default) or gpu" },
	{ "device", 0, CLI_STR, &c.device, "DEV",
	  "gpu: soft, kfd, kfd:N (default: $T0_DEVICE, else a GPU, else "
	  "soft)" },
	{ "copy", 0, CLI_FLAG, &c.copy, NULL,
	  "copy weights into large pages instead of mapping them" },
	{ "threads", 't', CLI_U64, &c.threads, "N",
	  "default: one for each processor" },
	CLI_OF(RUNS " info make forecast"),
	{ "weights", 'w', CLI_STR, &c.weights, "TYPE",
	  "convert to f32, f16, bf16, int8 or int4 (default: as "
	  "stored); make: what to write (bf16)" },
	CLI_OF(RUNS " forecast"),
	{ "cache", 0, CLI_STR, &c.cache, "TYPE",
	  "keys and values in f32 (default), f16, bf16 or int8" },
	CLI_OF("generate eval quantize forecast"),
	{ "context", 0, CLI_U64, &c.context, "N",
	  "positions of the cache (default 4096)" },
	CLI_OF(RUNS),
	{ "chunk", 0, CLI_U64, &c.chunk, "N",
	  "tokens of a prompt in one pass (default 512)" },
	CLI_OF(RUNS " check"),
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
	CLI_OF("generate"),
	{ "tokens", 'n', CLI_U64, &c.tokens, "N",
	  "at most so many (default 128)" },
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
	CLI_OF("generate bench quantize make"),
	{ "seed", 0, CLI_U64, &c.seed, "N",
	  "of sampling, of bench's prompt, of make's weights" },
	CLI_OF("bench forecast"),
	{ "prefill", 0, CLI_STR, &c.prefill, "SWEEP",
	  "prompt lengths (128)" },
	{ "batch", 0, CLI_STR, &c.batch, "SWEEP",
	  "sequences decoded at once (1)" },
	CLI_OF("bench forecast quantize"),
	{ "db", 0, CLI_STR, &c.db, "FILE",
	  RES_DB_HELP "; forecast, quantize: named, it gets rows" },
	CLI_OF("bench"),
	{ "decode", 0, CLI_STR, &c.decode, "SWEEP",
	  "decoded tokens (32)" },
	{ "samples", 0, CLI_U64, &c.samples, "N", "repetitions (6)" },
	{ "fresh-process", 0, CLI_FLAG, &c.fresh, NULL,
	  "a process of its own for every sample" },
	{ "one", 0, CLI_STR, &c.one, "PHASE",
	  "only print the seconds of one prefill or decode" },
	CLI_OF("logits"),
	{ "all", 0, CLI_FLAG, &c.all, NULL,
	  "of every token, not only the last" },
	CLI_OF("quantize"),
	{ "to", 0, CLI_STR, &c.to, "TYPE",
	  "int8 or int4, in groups of 32" },
	CLI_OF("make forecast"),
	{ "shape", 0, CLI_STR, &c.shape, "NAME",
	  "tiny, 0.6b, 1.7b, 4b, 8b, 14b or 32b" },
	CLI_OF("make"),
	{ "tokenizer", 0, CLI_STR, &c.tokenizer, "DIR",
	  "copy the tokenizer of this folder" },
	{ "shards", 0, CLI_U64, &c.shards, "N",
	  "files to spread the weights over (1)" },
	CLI_OF("check"),
	{ "limits", 0, CLI_STR, &c.limits, "FILE",
	  "lines \"name value\" that replace its limits" },
	CLI_OF(RUNS " info check forecast"),
	{ "out", 0, CLI_STR, &c.cmd.output, "FILE", "as --output" },
	{ 0 }
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-qwen3",
		.summary = "run, measure and judge Qwen3 language models",
		.commands = commands,
		.options = options,
		.notes = "Exit: 0 done, 1 not coherent, 2 trouble, 3 the "
			 "model's output is broken.",
		.check = catch_signals,
	};

	return cmd_main(&c.cmd, &tool, argc, argv);
}
