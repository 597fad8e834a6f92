/*
 * engine/cmd/t0-qwen3.c - Qwen3 models: run, train, measure, judge.
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
	.top_k = UINT64_MAX, .prefill = "128", .decode = "32", .batch = "1", .depth = "0",
	.shape = "tiny", .shards = 1, .devices = 1,
	.steps = 500, .rows = 8, .accumulate = 1, .length = 256, .layers = 4,
	.hidden = 128, .heads = 4, .kv_heads = 2, .vocab = 1024,
	.warmup = UINT64_MAX, .cooldown = UINT64_MAX,
	.eval_every = UINT64_MAX, .save_every = UINT64_MAX,
	.valid_share = 0.1, .rate = 2e-3, .rate_end = 0.1, .decay = 0.1,
	.clip = 1, .beta1 = 0.9, .beta2 = 0.95, .momentum = 0.95,
	.precision = "f32", .recompute = "none", .optimizer = "adamw",
	.schedule = "cosine", .lora_targets = "q_proj,v_proj",
	.bind = "127.0.0.1", .pooling = "last", .port = 8080, .sequences = 16, .queue = 256,
	.max_body = 1 << 20, .timeout = 600, .receive = 60, .grace = 30,
	.thinking = "dim", .answer = 1024,
	.url = "http://127.0.0.1:8080", .request_rate = "1", .requests = 32,
	.words = 32, .within_first = INFINITY, .within_token = INFINITY,
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
	{ "chat", "--model DIR", "a conversation, in a terminal or of lines",
	  qwen_cmd_chat, 0, 0, .flags = CMD_QUIET,
	  .notes = "Lines are turns, those that begin with a slash commands: "
		   "/help lists them." },
	{ "serve", "--model DIR", "OpenAI's interface over HTTP, for many users",
	  qwen_cmd_serve, 0, 0, .flags = CMD_QUIET,
	  .notes = "It ends on SIGTERM or SIGINT, when what it has begun is "
		   "finished or --grace is over." },
	{ "load", "[--url URL]", "how a server does under load",
	  qwen_cmd_load, 0, 0, FLAGS,
	  .notes = "Requests come when they are due, whatever became of those "
		   "before.  The exit status is 1 if one was not answered." },
	{ "bench", "--model DIR", "tokens per second, into the database",
	  qwen_cmd_bench, 0, 0, FLAGS },
	{ "eval", "--model DIR", "perplexity of a text", qwen_cmd_eval, 0, 0,
	  FLAGS },
	{ "logits", "--model DIR --ids N,N... --out FILE",
	  "what the model says about tokens", qwen_cmd_logits, 0, 0,
	  .flags = CMD_OUTPUT | CMD_QUIET,
	  .notes = "It writes float32, little-endian, [vocabulary] for the "
		   "last token or [tokens][vocabulary] with --all." },
	{ "embed", "--model DIR [TEXT...]", "texts as vectors",
	  qwen_cmd_embed, 0, CMD_MANY, FLAGS,
	  .notes = "Without TEXT, --texts and --query it reads standard input, "
		   "a text a line.  It prints a line of JSON for each, or with "
		   "--cosine a table." },
	{ "rerank", "--model DIR QUERY [DOCUMENT...]",
	  "which documents answer a query", qwen_cmd_rerank, 1, CMD_MANY, FLAGS,
	  .notes = "Without DOCUMENT and --texts it reads standard input, a "
		   "document a line.  The score is the probability of \"yes\"." },
	{ "check", "--model DIR", "is a text coherent?  exit 1 if not",
	  qwen_cmd_check, 0, 0, FLAGS },
	{ "info", "--model DIR", "what a model consists of", qwen_cmd_info, 0,
	  0, FLAGS },
	{ "make", "--model DIR [--shape NAME]", "a model of random weights",
	  qwen_cmd_make, 0, 0, .flags = CMD_QUIET },
	{ "quantize", "{--to TYPE | --bits X} FROM INTO | --frontier FROM",
	  "a smaller copy of a model, and what it costs", qwen_cmd_quantize,
	  1, 2, FLAGS,
	  .notes = "--frontier writes none: it has a row for every format of "
		   "weights, with what that loses and how fast it is." },
	{ "convert", "[--type TYPE] FROM INTO",
	  "a model's folder as a GGUF file, or back", qwen_cmd_convert, 2, 2,
	  .flags = CMD_QUIET,
	  .notes = "INTO is a file if its name ends in .gguf, else a folder.  "
		   "Without --type no weight changes; blocks become f32 in a "
		   "folder." },
	{ "tokenize", "[FILE...]",
	  "text to ids, and back", qwen_cmd_tokenize, 0, CMD_MANY, FLAGS,
	  .notes = "Without FILE it reads standard input, or takes --prompt.  "
		   "The ids of each are a line; --offsets, --json and --csv "
		   "have a row for each token." },
	{ "train", "--data PATH INTO",
	  "a model learns from text",
	  qwen_cmd_train, 1, 1, FLAGS,
	  .notes = "INTO becomes a model's folder, with the weights that did "
		   "best on what is held out, log.csv and the checkpoint that "
		   "--resume goes on from." },
	{ "forecast", "[--model DIR | --shape NAME]",
	  "tokens per second of a card, simulated", qwen_cmd_forecast, 0, 0,
	  FLAGS,
	  .notes = "It simulates the gfx1100 backend's packets for --batch "
		   "tokens behind --context - 1 others and for prompts of "
		   "--prefill tokens, and needs no weights." },
	{ 0 },
};

#define RUNS "generate bench eval logits quantize"
#define SEARCHES "embed rerank"
#define OPENS RUNS " serve chat " SEARCHES

static const struct cli_opt options[] = {
	CLI_OF("generate serve chat bench eval logits check info make forecast "
	       "train tokenize " SEARCHES),
	{ "model", 'm', CLI_STR, &c.model, "DIR",
	  "folder of a Hugging Face Qwen3 model, or a GGUF file" },
	CLI_OF(OPENS " info train"),
	{ "backend", 0, CLI_STR, &c.backend, "NAME", "cpu (default) or gpu" },
	{ "device", 0, CLI_STR, &c.device, "DEV",
	  "gpu: soft, soft*N:M, kfd, kfd:N (default: $T0_DEVICE, else a GPU, else "
	  "soft)" },
	CLI_OF(RUNS " forecast train " SEARCHES),
	{ "devices", 0, CLI_U64, &c.devices, "N",
	  "gpu: devices that share the model, or train's batches, 1 to 8" },
	CLI_OF(RUNS " info train " SEARCHES),
	{ "copy", 0, CLI_FLAG, &c.copy, NULL,
	  "read weights into large pages at once; else that is done meanwhile, "
	  "where memory is twice as large" },
	CLI_OF(OPENS " info"),
	{ "checksum", 0, CLI_STR, &c.checksum, "HOW",
	  "of the weights: store it beside them, or verify them first" },
	CLI_OF(OPENS " info convert train"),
	{ "threads", 't', CLI_U64, &c.threads, "N",
	  "default: one for each processor" },
	CLI_OF(OPENS " info make forecast"),
	{ "weights", 'w', CLI_STR, &c.weights, "TYPE",
	  "convert to f32, f16, bf16, int8, int4 or others of quantize "
	  "(default: as stored); make: what to write (bf16)" },
	CLI_OF(OPENS " info forecast"),
	{ "cache", 0, CLI_STR, &c.cache, "TYPE[,TYPE]",
	  "keys and values in f16 (default; forecast: bf16), f32, bf16, f8, "
	  "int8, int4 or int4r; two: each in its own" },
	CLI_OF(OPENS),
	{ "activations", 0, CLI_STR, &c.activations, "TYPE",
	  "what inputs of products are rounded to: auto (default), f32 (not at "
	  "all), bf16, f16 or int8" },
	CLI_OF("generate serve chat eval quantize info forecast " SEARCHES),
	{ "context", 0, CLI_U64, &c.context, "N",
	  "positions of the cache (default 4096)" },
	CLI_OF(OPENS),
	{ "chunk", 0, CLI_U64, &c.chunk, "N",
	  "tokens of a prompt in one pass (default 512)" },
	CLI_OF(RUNS " check train tokenize load"),
	{ "prompt", 'p', CLI_STR, &c.prompt, "TEXT",
	  "the prompt; train: of samples on the way" },
	CLI_OF(RUNS " check load"),
	{ "prompt-file", 'f', CLI_STR, &c.prompt_file, "FILE",
	  "the prompt, from a file; - is stdin" },
	CLI_OF(RUNS " check"),
	{ "messages", 0, CLI_STR, &c.messages, "FILE",
	  "a conversation as JSON: [{\"role\", \"content\"}]" },
	{ "tools", 0, CLI_STR, &c.tools, "FILE",
	  "with --messages: the tools as JSON" },
	{ "ids", 0, CLI_STR, &c.ids, "N,N...",
	  "tokens instead of a prompt; needs no tokenizer" },
	{ "chat", 0, CLI_FLAG, &c.chat, NULL, "the prompt is a user's turn" },
	CLI_OF(RUNS " check chat"),
	{ "system", 0, CLI_STR, &c.system, "TEXT",
	  "in chat and with --chat: the system's turn" },
	{ "no-think", 0, CLI_FLAG, &c.no_think, NULL,
	  "in chat and with --chat or --messages: thinking off" },
	CLI_OF(RUNS " check tokenize " SEARCHES),
	{ "plain", 0, CLI_FLAG, &c.plain, NULL,
	  "special tokens in the prompt are text" },
	CLI_OF("embed"),
	{ "query", 0, CLI_LIST, &c.queries, "TEXT",
	  "a query, with its instruction before it; may be repeated" },
	{ "dimensions", 0, CLI_U64, &c.dimensions, "N",
	  "only the first N of each vector (default: all)" },
	{ "cosine", 0, CLI_FLAG, &c.cosine, NULL,
	  "how near each query is to each text; without one, each pair" },
	CLI_OF(SEARCHES),
	{ "instruct", 0, CLI_STR, &c.instruct, "TEXT",
	  "what is searched for, in a sentence (default: as published)" },
	{ "texts", 0, CLI_STR, &c.texts, "FILE",
	  "texts or documents, one a line; - is stdin" },
	CLI_OF("tokenize"),
	{ "detokenize", 0, CLI_FLAG, &c.detokenize, NULL,
	  "FILE holds ids: print their text" },
	{ "offsets", 0, CLI_FLAG, &c.offsets, NULL,
	  "also where each token stands, in bytes of the text" },
	CLI_OF("generate serve load"),
	{ "tokens", 'n', CLI_U64, &c.tokens, "N",
	  "at most so many (default 128)" },
	CLI_OF("chat"),
	{ "tokens", 'n', CLI_U64, &c.answer, "N",
	  "of an answer, at most (1024)" },
	{ "thinking", 0, CLI_STR, &c.thinking, "HOW",
	  "show thoughts, dim them (default) or hide them" },
	{ "history", 0, CLI_STR, &c.history, "FILE",
	  "of the lines of a terminal (default: "
	  "~/.local/state/t0/chat; \"\": none)" },
	CLI_OF("generate serve chat"),
	{ "greedy", 'g', CLI_FLAG, &c.greedy, NULL,
	  "always the likeliest token" },
	CLI_OF("generate serve chat load"),
	{ "temperature", 0, CLI_F64, &c.temperature, "X",
	  "0 is greedy (default: as the model says)" },
	CLI_OF("generate serve chat"),
	{ "top-k", 0, CLI_U64, &c.top_k, "N", "only the N likeliest" },
	{ "top-p", 0, CLI_F64, &c.top_p, "P",
	  "only the likeliest that make up P" },
	{ "min-p", 0, CLI_F64, &c.min_p, "P",
	  "only those at least P times as likely as the likeliest" },
	{ "repetition-penalty", 0, CLI_F64, &c.penalty, "X", "1 is none" },
	CLI_OF("generate serve bench"),
	{ "speculate", 0, CLI_STR, &c.speculate, "HOW[:N]",
	  "propose up to N tokens (7) and verify them in one pass: lookup, "
	  "draft, medusa, eagle or wrong" },
	{ "draft", 0, CLI_STR, &c.draft, "DIR",
	  "the smaller model of --speculate draft, which it implies" },
	{ "heads", 0, CLI_STR, &c.heads_dir, "DIR",
	  "the heads of --speculate medusa, which it implies, or eagle" },
	CLI_OF("generate serve chat load bench quantize make train"),
	{ "seed", 0, CLI_U64, &c.seed, "N",
	  "of sampling, of load's prompts and times, of bench's prompt, of make's and train's "
	  "weights, of train's order" },
	CLI_OF("bench forecast"),
	{ "prefill", 0, CLI_STR, &c.prefill, "SWEEP",
	  "prompt lengths (128)" },
	{ "batch", 0, CLI_STR, &c.batch, "SWEEP",
	  "sequences decoded at once (1)" },
	CLI_OF("bench"),
	{ "depth", 0, CLI_STR, &c.depth, "SWEEP",
	  "positions that are filled before what is measured (0)" },
	CLI_OF("bench load forecast quantize train"),
	{ "db", 0, CLI_STR, &c.db, "FILE",
	  RES_DB_HELP "; forecast, quantize, train: named, it gets rows" },
	CLI_OF("bench"),
	{ "decode", 0, CLI_STR, &c.decode, "SWEEP",
	  "decoded tokens (32)" },
	CLI_OF("bench quantize load"),
	{ "samples", 0, CLI_U64, &c.samples, "N", "repetitions (6)" },
	CLI_OF("bench"),
	{ "fresh-process", 0, CLI_FLAG, &c.fresh, NULL,
	  "a process of its own for every sample" },
	{ "one", 0, CLI_STR, &c.one, "PHASE",
	  "only print the seconds of one prefill or decode" },
	CLI_OF("logits"),
	{ "all", 0, CLI_FLAG, &c.all, NULL,
	  "of every token, not only the last" },
	CLI_OF("quantize"),
	{ "to", 0, CLI_STR, &c.to, "TYPE",
	  "int8 or int4, in groups of 32, or int6_N or int3_N in groups of N: "
	  "32, 64, 128 or 256" },
	{ "calibrate", 0, CLI_STR, &c.calibrate, "FILE",
	  "fit the integers to what this text brings to them" },
	{ "bits", 0, CLI_F64, &c.bits, "X",
	  "for a weight: a type of each matrix, as it helps most; in a GGUF file "
	  "q3_k to q8_0, in a folder int3_64 to int8" },
	{ "frontier", 0, CLI_FLAG, &c.frontier, NULL,
	  "loss, bytes and speed of every format of weights" },
	CLI_OF("convert"),
	{ "type", 0, CLI_STR, &c.type, "TYPE",
	  "f32, f16, bf16, or for a file q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl, "
	  "mxfp4, q6_k, q5_k, q4_k, iq4_xs, q3_k or q2_k" },
	CLI_OF("make forecast"),
	{ "shape", 0, CLI_STR, &c.shape, "NAME",
	  "tiny, 0.6b, 1.7b, 4b, 8b, 14b, 32b; mixtures: tiny-moe, 30b-a3b, "
	  "235b-a22b" },
	CLI_OF("make train"),
	{ "tokenizer", 0, CLI_STR, &c.tokenizer, "DIR",
	  "copy the tokenizer of this folder" },
	CLI_OF("make"),
	{ "shards", 0, CLI_U64, &c.shards, "N",
	  "files to spread the weights over (1)" },
	CLI_OF("train"),
	{ "data", 0, CLI_LIST, &c.data, "PATH",
	  "text, .jsonl, .bin or a folder to learn from; may be repeated" },
	{ "valid", 0, CLI_LIST, &c.valid, "PATH",
	  "the same, held out (default: the end of the data)" },
	{ "valid-share", 0, CLI_F64, &c.valid_share, "X",
	  "the share of the data that is held out (0.1)" },
	{ "layers", 0, CLI_U64, &c.layers, "N",
	  "of a new model (4); the same for all sizes that follow" },
	{ "hidden", 0, CLI_U64, &c.hidden, "N", "width of the model (128)" },
	{ "heads", 0, CLI_U64, &c.heads, "N", "heads of queries (4)" },
	{ "kv-heads", 0, CLI_U64, &c.kv_heads, "N", "of keys (2)" },
	{ "head-dim", 0, CLI_U64, &c.head_dim, "N",
	  "of a head (default: hidden / heads)" },
	{ "ffn", 0, CLI_U64, &c.ffn, "N",
	  "width of SwiGLU (default: 3 * hidden)" },
	{ "vocab", 0, CLI_U64, &c.vocab, "N",
	  "tokens of the tokenizer that is trained (1024); 265: bytes" },
	{ "engram", 0, CLI_STR, &c.engram, "ROWS[:LAYER]",
	  "tables of so many rows of runs of two and three tokens, added before "
	  "a layer (1)" },
	{ "untied", 0, CLI_FLAG, &c.untied, NULL,
	  "the output layer is not the embedding" },
	CLI_OF("train forecast"),
	{ "length", 0, CLI_U64, &c.length, "N", "tokens of a row (256)" },
	{ "rows", 0, CLI_U64, &c.rows, "N", "rows of a batch (8)" },
	{ "accumulate", 0, CLI_U64, &c.accumulate, "N",
	  "batches of a step (1)" },
	{ "precision", 0, CLI_STR, &c.precision, "TYPE",
	  "weights and what products take: f32 (default), bf16 or f16" },
	{ "no-masters", 0, CLI_FLAG, &c.no_masters, NULL,
	  "bf16: no weights in f32, steps are rounded by chance" },
	{ "recompute", 0, CLI_STR, &c.recompute, "WHAT",
	  "make activations again: none (default), ffn, attention or all" },
	{ "lora", 0, CLI_U64, &c.lora, "RANK",
	  "only adapters of this rank learn (train: with --model)" },
	{ "lora-targets", 0, CLI_STR, &c.lora_targets, "NAME,NAME...",
	  "matrices with adapters (q_proj and v_proj; all: every one)" },
	{ "optimizer", 0, CLI_STR, &c.optimizer, "NAME",
	  "adamw (default), sgd or muon" },
	CLI_OF("forecast"),
	{ "chip", 0, CLI_STR, &c.chip, "CHIP",
	  "of the card: gfx1100 (default), gfx1030, gfx1151, gfx1201, ..." },
	CLI_OF("train"),
	{ "medusa", 0, CLI_U64, &c.medusa, "N",
	  "N heads of --model learn to say the tokens behind the next one" },
	{ "eagle", 0, CLI_U64, &c.eagle, "N",
	  "a layer of --model learns to say N tokens behind the next one, each "
	  "from what it said before" },
	{ "steps", 0, CLI_U64, &c.steps, "N", "(500)" },
	{ "schedule", 0, CLI_STR, &c.schedule, "NAME",
	  "cosine (default), linear, wsd or constant" },
	{ "rate", 0, CLI_F64, &c.rate, "X", "the learning rate (0.002)" },
	{ "rate-end", 0, CLI_F64, &c.rate_end, "X",
	  "the share of it at the end (0.1)" },
	{ "warmup", 0, CLI_U64, &c.warmup, "N",
	  "steps up (default: a fiftieth of all)" },
	{ "cooldown", 0, CLI_U64, &c.cooldown, "N",
	  "wsd: steps down at the end (default: a fifth of all)" },
	{ "decay", 0, CLI_F64, &c.decay, "X", "of matrices (0.1)" },
	{ "clip", 0, CLI_F64, &c.clip, "X",
	  "length of all gradients together, at most (1; 0: any)" },
	{ "beta1", 0, CLI_F64, &c.beta1, "X", "of AdamW (0.9)" },
	{ "beta2", 0, CLI_F64, &c.beta2, "X", "of AdamW (0.95)" },
	{ "momentum", 0, CLI_F64, &c.momentum, "X",
	  "of sgd and muon (0.95)" },
	{ "average", 0, CLI_F64, &c.average, "X",
	  "write a moving average that keeps X of itself a step" },
	{ "eval-every", 0, CLI_U64, &c.eval_every, "N",
	  "steps between looks at what is held out (default: a tenth)" },
	{ "save-every", 0, CLI_U64, &c.save_every, "N",
	  "steps between checkpoints (default: a tenth)" },
	{ "resume", 0, CLI_FLAG, &c.resume, NULL,
	  "go on from INTO's checkpoint, if there is one" },
	{ "sweep", 0, CLI_STR, &c.sweep, "FILE",
	  "a run for each combination of its lines \"OPTION VALUE...\"" },
	CLI_OF("train quantize"),
	{ "shard", 0, CLI_STR, &c.shard, "I/N",
	  "of a sweep or a frontier: only part I of N of it (default: "
	  "$T0_SHARD)" },
	CLI_OF("forecast"),
	{ "train", 0, CLI_FLAG, &c.train, NULL,
	  "a training step instead of passes: the options of train say which; "
	  "of a step that does not fit more is made again" },
	CLI_OF("load"),
	{ "url", 0, CLI_STR, &c.url, "URL",
	  "the server, before /v1 (http://127.0.0.1:8080)" },
	{ "model", 'm', CLI_STR, &c.asked_model, "NAME",
	  "of the server's (default: its first)" },
	{ "request-rate", 0, CLI_STR, &c.request_rate, "X,X...",
	  "requests a second, one rate after another (1)" },
	{ "requests", 0, CLI_U64, &c.requests, "N",
	  "of a sample of a rate (32)" },
	{ "trace", 0, CLI_STR, &c.trace, "FILE",
	  "when requests come instead, and how long they are" },
	{ "words", 0, CLI_U64, &c.words, "N",
	  "of a prompt by chance (32)" },
	{ "chat", 0, CLI_FLAG, &c.chat, NULL, "ask /v1/chat/completions" },
	{ "within-first", 0, CLI_F64, &c.within_first, "SECONDS",
	  "goodput: limit of the first token" },
	{ "within-token", 0, CLI_F64, &c.within_token, "SECONDS",
	  "goodput: limit of the mean time of those that follow" },
	{ "tokenizer", 0, CLI_STR, &c.tokenizer, "DIR",
	  "judge the texts' coherence with that of this model" },
	{ "log", 0, CLI_STR, &c.log, "FILE", "a row for every request, as CSV" },
	CLI_OF("train serve"),
	{ "tui", 0, CLI_FLAG, &c.tui, NULL,
	  "full screen on a terminal: how far it is, and a curve" },
	CLI_OF("serve"),
	{ "bind", 0, CLI_STR, &c.bind, "ADDRESS", "listen there (127.0.0.1)" },
	{ "port", 0, CLI_U64, &c.port, "N", "0: any that is free (8080)" },
	CLI_OF("serve load"),
	{ "api-key-file", 0, CLI_STR, &c.key_file, "FILE",
	  "whose first line clients send as a bearer's token" },
	{ "timeout", 0, CLI_U64, &c.timeout, "N",
	  "seconds for a request (600)" },
	CLI_OF("serve"),
	{ "sequences", 0, CLI_U64, &c.sequences, "N",
	  "texts that are written at once (16)" },
	{ "blocks", 0, CLI_U64, &c.blocks, "N",
	  "of 16 positions, in the cache (default: all sequences fit)" },
	{ "queue", 0, CLI_U64, &c.queue, "N",
	  "requests at once, those that wait included (256)" },
	{ "max-body", 0, CLI_U64, &c.max_body, "N",
	  "bytes of a request (1048576)" },
	{ "receive", 0, CLI_U64, &c.receive, "N",
	  "seconds for a request to come whole, and beyond --timeout for its "
	  "answer to go (60)" },
	{ "grace", 0, CLI_U64, &c.grace, "N",
	  "seconds after a signal for what was begun (30)" },
	{ "pooling", 0, CLI_STR, &c.pooling, "HOW",
	  "a text's embedding: its last token's vector, last (default), that of "
	  QWEN_SEARCH_END " behind it, end, or all tokens' mean" },
	CLI_OF("check"),
	{ "limits", 0, CLI_STR, &c.limits, "FILE",
	  "lines \"name value\" that replace its limits" },
	CLI_OF(RUNS " info check forecast tokenize"),
	{ "out", 0, CLI_STR, &c.cmd.output, "FILE", "as --output" },
	{ 0 }
};

int main(int argc, char **argv)
{
	static const struct cmd_tool tool = {
		.name = "t0-qwen3",
		.summary = "run, train, measure and judge Qwen3 models",
		.commands = commands,
		.options = options,
		.notes = "Exit: 0 done, 1 not coherent, 2 trouble, 3 the "
			 "model's output is broken.",
		.check = catch_signals,
	};

	return cmd_main(&c.cmd, &tool, argc, argv);
}
