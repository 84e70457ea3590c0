/**
 * Writes docs/benchmarks.md from runs: `node bench/page.ts RUN.json … [--spread RUN.json …] [--note TEXT] > docs/benchmarks.md`
 *
 * A RUN.json is what `npm run bench -- --json` prints. Of a benchmark that several runs have, the last one counts. Runs after `--spread` are
 * repetitions of `--quick`, which show how much ratios differ from run to run. The note says what else the machine did.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Cells, cellsOf, type Figure, missingPeers, partsOf, type Report, type Results, ratioOf } from './figures.ts'
import { gateLimits } from './gate.ts'
import { median } from './measure.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { spread: { type: 'string', multiple: true, default: [] }, note: { type: 'string', default: '' } },
})
// JSON has no NaN, which is the figure of a peer that failed.
const read = (path: string) =>
  JSON.parse(readFileSync(path, 'utf8'), (_, value) => (value === null ? Number.NaN : value)) as Report
const reports = positionals.map(read)

const results = [
  ...new Map(
    reports.flatMap(({ isQuick, results }) => results.map((each) => [each.benchmark, { ...each, isQuick }] as const)),
  ).values(),
]
console.log(page(reports, results, values.spread.map(read)))

function page(
  all: readonly Report[],
  measured: readonly (Results & { readonly isQuick: boolean })[],
  spread: readonly Report[],
): string {
  const missing = missingPeers(measured)
  return [
    '# Benchmarks',
    '',
    'Each figure stands beside its floor: the least work that gives the same result, measured in the same run on the same cores. **A ratio above 1 means better than the floor, whatever the unit.**',
    'Compare ratios, not figures: those belong to the machine. `npm run bench` fails if a goal is missed.',
    '',
    ...machineLines(all),
    ...(values.note === '' ? [] : ['', values.note]),
    '',
    'Where another program does the same work, its figure of the same run follows, with what it guarantees at that figure. The ratio then is ours beside it.',
    ...missing.map(([install, names]) => `Not installed when this was measured: ${names} (\`${install}\`).`),
    'Vector, Fluent Bit and Redpanda Connect are in none of the registries that the benchmarks install from, so they are not here.',
    '',
    '```sh',
    'npm run bench                                  # about 20 minutes; --help shows how to choose',
    'npm run bench -- --json > run.json             # this page, from a run:',
    'node bench/page.ts run.json > docs/benchmarks.md',
    '```',
    '',
    ...measured.flatMap(({ benchmark, about, figures, isQuick }) => [
      `## \`${benchmark}\``,
      '',
      about + (isQuick ? ' This was a quick run.' : ''),
      '',
      '| | ours | floor or peer | ratio | goal |',
      '|---|---:|---:|---:|---|',
      ...figures.flatMap(rowsOf),
      '',
    ]),
    ...noise(spread),
  ]
    .join('\n')
    .trimEnd()
}

function machineLines(all: readonly Report[]): readonly string[] {
  const [first] = all
  if (first === undefined) return []
  const { cpu, cores, memoryBytes, kernel, node } = first.machine
  const commits = [...new Set(all.map(({ machine }) => machine.commit))].join(', ')
  return [
    '| machine | |',
    '|---|---|',
    `| processor | ${cpu}, ${cores} cores |`,
    `| memory | ${(memoryBytes / 2 ** 30).toFixed(0)} GiB |`,
    `| system | ${kernel}, Node ${node} |`,
    `| measured | ${all.at(-1)?.machine.date.slice(0, 10)}, at ${commits} |`,
  ]
}

function rowsOf(figure: Figure): readonly string[] {
  const [own, ...peers] = cellsOf(figure)
  const line = ({ work, ours, other, ratio, goal }: Cells) => `| ${[work, ours, other, ratio, goal].join(' | ')} |`
  const details = figure.parts === undefined ? '' : ` (${partsOf(figure.parts)})`
  return [line({ ...own, work: own.work + details }), ...peers.map((peer) => line({ ...peer, work: `– *${peer.work}*` }))]
}

/** Returns the lowest, the median and the highest ratio of each figure, and which of them CI compares. */
function noise(spread: readonly Report[]): readonly string[] {
  if (spread.length === 0) return []
  const ratios = new Map<string, { isSteady: boolean; all: number[] }>()
  for (const { benchmark, figures } of spread.flatMap((report) => report.results)) {
    for (const figure of figures) {
      const ratio = ratioOf(figure)
      if (ratio === undefined) continue
      const name = `${benchmark}: ${figure.work}`
      const { all } = ratios.get(name) ?? { all: [] }
      ratios.set(name, { isSteady: figure.isSteady === true, all: [...all, ratio] })
    }
  }
  const percent = (share: number) => `${(share * 100).toFixed(0)} %`
  return [
    '## How noisy it is',
    '',
    `Ratios of ${spread.length} quick runs, one after the other:`,
    '',
    '| ratio of | lowest | median | highest | lowest below the median | compared by CI |',
    '|---|---:|---:|---:|---:|---|',
    ...[...ratios].map(([name, { isSteady, all }]) => {
      const [lowest, usual, highest] = [Math.min(...all), median(all), Math.max(...all)]
      const cells = [lowest, usual, highest].map((each) => each.toFixed(2))
      return `| ${name} | ${cells.join(' | ')} | ${percent(1 - lowest / usual)} | ${isSteady ? 'yes' : ''} |`
    }),
    '',
    `CI makes a quick run at its end (\`--gate\`) and keeps the ratios of each commit in \`~/.cache/inlet-bench\`. It fails if a ratio that it compares is more than ${percent(gateLimits.dropMax)} below the median of the newest ${gateLimits.runsMax} runs that passed`,
    `on the same model of machine, and is so again when it is measured once more. With fewer than ${gateLimits.runsMin} such runs it only stores. Wall-clock ratios are not compared: disk and neighbours move them too much.`,
  ]
}
