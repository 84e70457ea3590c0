/**
 * Runs benchmarks, one after the other, each in its own process, and prints one table of all figures at the end: `npm run bench -- --help`.
 * Every figure stands beside its floor from the same run: on a shared machine only the ratios are meaningful.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Figure, isReached, type Options, type Report, type Results, say, toJson, toTable } from './figures.ts'
import { judge, steadyRatios, toSentence } from './gate.ts'
import { thisMachine } from './machine.ts'

/** The first ones are in a quick run. */
const quick = ['wal-append', 'http-ingest', 'latency', 'mqtt', 'extract', 'snapshot']
const all = [
  ...quick,
  'pipeline',
  'commit-latency',
  'copies',
  'many-views',
  'many-endpoints',
  'windows',
  'restart',
  'idle-memory',
  'mqtt-idle',
  'control-hostile',
  'fairness',
  'console',
]

const usage = `npm run bench -- [names] [options]
  names           ${all.join(', ')}
  --quick         a few minutes: less data, fewer rounds; if no name is given, only ${quick.join(', ')}
  --only WORDS    only cases with these words in their name, for example --only 'QoS 1' --only websocket
  --rounds N      instead of the usual number of rounds
  --json          one JSON document instead of the table
  --gate FOLDER   compares steady ratios with those of earlier runs in the folder, and keeps them there; fails only if one drops
BENCH_PROFILE=DIRECTORY writes a CPU profile of each process there.`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string' },
    json: { type: 'boolean', default: false },
    gate: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const unknown = positionals.filter((name) => !all.includes(name))
if (unknown.length > 0) console.error(`unknown benchmark: ${unknown.join(', ')}`)
if (unknown.length > 0 || values.help) {
  console.error(usage)
  process.exit(values.help ? 0 : 2)
}

const options: Options = {
  isQuick: values.quick,
  only: values.only,
  ...(values.rounds === undefined ? {} : { rounds: Number(values.rounds) }),
}
const machine = thisMachine()
const results: Results[] = []
for (const name of positionals.length > 0 ? positionals : values.quick ? quick : all) results.push(await run(name))
const report: Report = { machine, isQuick: values.quick, results }
console.log(values.json ? toJson(report) : toTable(report))
if (values.gate !== undefined) await compareWithEarlier(values.gate)
else if (results.some(({ figures }) => !figures.every(isReached))) process.exitCode = 1

async function compareWithEarlier(folder: string): Promise<void> {
  const { file, drops, uncompared } = await judge(folder, machine, steadyRatios(results), async (names) => {
    const again = results.filter(({ figures, benchmark }) => figures.some(({ work }) => names.includes(`${benchmark}: ${work}`)))
    const repeated: Results[] = []
    for (const { benchmark } of again) repeated.push(await run(benchmark))
    return steadyRatios(repeated)
  })
  console.log(`ratios kept in ${file}`)
  if (uncompared > 0)
    console.log(`${uncompared} ratios have too few earlier runs on this model of machine: nothing to compare yet`)
  for (const drop of drops) console.error(toSentence(drop))
  if (drops.length === 0) return
  console.error(`If the drop is the price of something better, remove the files in ${folder}: the next runs only store.`)
  process.exitCode = 1
}

/** Keeps the figures of a benchmark that fails, too. With `--gate` it is run once more: a port may have been taken, for example. */
async function run(benchmark: string, attempts = values.gate === undefined ? 1 : 2): Promise<Results> {
  console.error(benchmark)
  const profile = process.env['BENCH_PROFILE']
  const child = fork(join(import.meta.dirname, 'child.ts'), [benchmark, JSON.stringify(options)], {
    execArgv: profile === undefined ? [] : ['--cpu-prof', '--cpu-prof-dir', profile],
    // Standard output is for the results.
    stdio: ['ignore', 2, 2, 'ipc'],
    serialization: 'advanced',
  })
  let about = ''
  const figures: Figure[] = []
  child.on('message', (message: { about: string } | { figure: Figure }) => {
    if ('figure' in message) figures.push(message.figure)
    else about = message.about
  })
  const [code] = await once(child, 'exit')
  if (code !== 0 && attempts > 1) {
    say(`${benchmark} failed, and is run once more`)
    return run(benchmark, attempts - 1)
  }
  if (code !== 0) {
    say(`${benchmark} failed`)
    process.exitCode = 1
  }
  return { benchmark, about, figures }
}
