/** Types of the results of a benchmark, and their output. A higher ratio is always better. */

/** A figure beside its floor: the least work that gives the same result, measured in the same run. */
export type Figure = {
  /** Unique in its benchmark. */
  readonly work: string
  readonly unit: string
  readonly better: 'higher' | 'lower'
  readonly ours: number
  readonly floor?: number
  /** The least ratio, or a bound on the figure itself. */
  readonly goal?: { readonly ratio: number } | { readonly ours: number }
  /** Its ratio hardly differs from run to run on the same machine, so CI compares it with earlier ones. */
  readonly isSteady?: boolean
  readonly peers?: readonly Peer[]
  /** Parts that explain the figure, in its unit. */
  readonly parts?: Readonly<Record<string, number>>
}

/** Another program at the same work in the same run, or how to install it. */
export type Peer = { readonly name: string } & (
  | { readonly value: number; readonly guarantee: string }
  | { readonly install: string }
)

export type Options = {
  /** A few minutes for all of them: less data, fewer rounds. */
  readonly isQuick: boolean
  /** Instead of the usual number of rounds. */
  readonly rounds?: number
  /** Words in the name of each case to measure. */
  readonly only: readonly string[]
}

export type Benchmark = {
  /** Description of the measurement and its floor. Shown in docs/benchmarks.md. */
  readonly about: string
  measure(options: Options): AsyncIterable<Figure>
}

export type Machine = {
  readonly cpu: string
  readonly cores: number
  readonly memoryBytes: number
  readonly kernel: string
  readonly node: string
  readonly commit: string
  readonly date: string
}

export type Results = { readonly benchmark: string; readonly about: string; readonly figures: readonly Figure[] }
export type Report = { readonly machine: Machine; readonly isQuick: boolean; readonly results: readonly Results[] }

type Measured = Omit<Figure, 'better'>

/** For example requests a second. */
export function rate(figure: Measured): Figure {
  return { ...figure, better: 'higher' }
}

/** For example CPU time, delay or memory. */
export function cost(figure: Measured): Figure {
  return { ...figure, better: 'lower' }
}

export function isWanted(name: string, { only }: Options): boolean {
  return only.every((word) => name.includes(word))
}

/** Tells a person who waits what is going on. Results go to standard output, at the end. */
export function say(text: string): void {
  console.error(`  ${text}`)
}

/** Returns how many times as good our figure is as another one, by default the floor. */
export function ratioOf({ better, ours, floor }: Figure, other = floor): number | undefined {
  if (other === undefined) return undefined
  return better === 'higher' ? ours / other : other / ours
}

export function isReached(figure: Figure): boolean {
  const { better, ours, goal } = figure
  if (goal === undefined) return true
  if (!Number.isFinite(ours)) return false
  if ('ratio' in goal) return (ratioOf(figure) ?? Number.NaN) >= goal.ratio
  return better === 'higher' ? ours >= goal.ours : ours <= goal.ours
}

/** For machines: every figure with its ratio, its goal and what became of it. */
export function toJson({ machine, isQuick, results }: Report): string {
  const complete = (figure: Figure) => ({
    ...figure,
    ratio: ratioOf(figure),
    isReached: figure.goal === undefined ? undefined : isReached(figure),
    peers: figure.peers?.map((peer) => ('value' in peer ? { ...peer, ratio: ratioOf(figure, peer.value) } : peer)),
  })
  return JSON.stringify(
    { machine, isQuick, results: results.map((each) => ({ ...each, figures: each.figures.map(complete) })) },
    null,
    2,
  )
}

const widths = { work: 52, value: 20, ratio: 7 }
const lineWidth = 120

/** For people: one table, with peers below the figure that they belong to. */
export function toTable({ machine, isQuick, results }: Report): string {
  return [
    describe(machine) + (isQuick ? ', quick run' : ''),
    '',
    row('', 'ours', 'floor or peer', 'ratio', 'goal'),
    ...results.flatMap(({ benchmark, figures }) => [benchmark, ...figures.flatMap(rowsOf), '']),
    ...missingPeers(results).map(([install, names]) => `without ${names}: ${install}`),
  ].join('\n')
}

function rowsOf(figure: Figure): readonly string[] {
  const [own, ...peers] = cellsOf(figure)
  return [
    ...rows(`  ${own.work}`, own.ours, own.other, own.ratio, own.goal),
    ...(figure.parts === undefined ? [] : wrap(`    ${partsOf(figure.parts)}`, lineWidth)),
    ...peers.flatMap(({ work, ours, other, ratio, goal }) => rows(`    ${work}`, ours, other, ratio, goal)),
  ]
}

export type Cells = {
  readonly work: string
  readonly ours: string
  /** The figure of the floor or of a peer. */
  readonly other: string
  readonly ratio: string
  readonly goal: string
}

/** Returns a row for the figure, and one for each of its peers that is installed. */
export function cellsOf(figure: Figure): readonly [Cells, ...Cells[]] {
  const { work, unit, ours, floor, peers = [] } = figure
  const value = (of: number | undefined) => (of === undefined ? '' : Number.isNaN(of) ? 'failed' : `${format(of)} ${unit}`)
  const ratio = (other: number | undefined) => {
    const of = ratioOf(figure, other)
    return of === undefined || Number.isNaN(of) ? '' : of.toFixed(2)
  }
  return [
    { work, ours: value(ours), other: value(floor), ratio: ratio(floor), goal: goalOf(figure) },
    ...peers.flatMap((peer) => {
      if ('install' in peer) return []
      const { name, guarantee, value: other } = peer
      return [{ work: `${name}: ${guarantee}`, ours: '', other: value(other), ratio: ratio(other), goal: '' }]
    }),
  ]
}

export function partsOf(parts: Readonly<Record<string, number>>): string {
  return Object.entries(parts)
    .map(([name, value]) => `${name} ${format(value)}`)
    .join(', ')
}

/** Returns the bound, and whether it was missed. */
function goalOf(figure: Figure): string {
  const { better, unit, goal } = figure
  if (goal === undefined) return ''
  const bound = 'ratio' in goal ? `≥ ${goal.ratio.toFixed(2)}` : `${better === 'higher' ? '≥' : '≤'} ${format(goal.ours)} ${unit}`
  return isReached(figure) ? bound : `${bound}, missed`
}

/** Returns three digits at least, and thousands apart. */
function format(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  return size >= 100 || size === 0
    ? Math.round(value).toLocaleString('en').replaceAll(',', ' ')
    : value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3)
}

export function describe({ cpu, cores, memoryBytes, kernel, node, commit, date }: Machine): string {
  return `${cpu}, ${cores} cores, ${(memoryBytes / 2 ** 30).toFixed(0)} GiB, ${kernel}, Node ${node}; ${commit}, ${date}`
}

/** Returns how to install what is missing, and the names of it. */
export function missingPeers(results: readonly Results[]): readonly (readonly [install: string, names: string])[] {
  const peers = results.flatMap(({ figures }) => figures.flatMap(({ peers = [] }) => peers))
  const missing = Map.groupBy(
    peers.filter((peer) => 'install' in peer),
    ({ install }) => install,
  )
  return [...missing].map(([install, all]) => [install, [...new Set(all.map(({ name }) => name))].join(', ')])
}

/** Breaks the first cell into lines if it is too long. */
function rows(work: string, ...cells: [ours: string, other: string, ratio: string, goal?: string]): readonly string[] {
  const [first = '', ...more] = wrap(work, widths.work)
  return [row(first, ...cells), ...more]
}

function row(work: string, ours: string, other: string, ratio: string, goal = ''): string {
  const cells = [
    work.padEnd(widths.work),
    ours.padStart(widths.value),
    other.padStart(widths.value),
    ratio.padStart(widths.ratio),
  ]
  return `${cells.join('')}  ${goal}`.trimEnd()
}

function wrap(text: string, width: number): readonly string[] {
  const indent = text.slice(0, text.length - text.trimStart().length)
  const lines: string[] = []
  let line = indent
  for (const word of text.trim().split(' ')) {
    if (line.trim() !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = `${indent}  ${word}`
    } else line += line === indent ? word : ` ${word}`
  }
  return [...lines, line]
}
