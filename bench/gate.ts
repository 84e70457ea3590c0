/**
 * Compares the steady ratios of a run with those of earlier commits on machines of the same model, and keeps them. A figure that drops is
 * measured once more before it counts: a gate that raises false alarms is soon ignored.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Machine, type Results, ratioOf } from './figures.ts'
import { median } from './measure.ts'

/** By `<benchmark>: <work>`. */
export type Ratios = Readonly<Record<string, number>>
export type Drop = { readonly name: string; readonly ratio: number; readonly usual: number; readonly runs: number }
export type Verdict = {
  /** Where the ratios of this run are kept. */
  readonly file: string
  readonly drops: readonly Drop[]
  /** Figures with too few earlier runs to compare with. */
  readonly uncompared: number
}

type Stored = { readonly machine: Machine; readonly hasPassed: boolean; readonly ratios: Ratios }

export const gateLimits = { dropMax: 0.15, runsMin: 5, runsMax: 20, filesMax: 1_000 } as const

export function steadyRatios(results: readonly Results[]): Ratios {
  const figures = results.flatMap(({ benchmark, figures }) => figures.map((figure) => ({ benchmark, figure })))
  return Object.fromEntries(
    figures
      .filter(({ figure }) => figure.isSteady === true)
      .map(({ benchmark, figure }) => [`${benchmark}: ${figure.work}`, ratioOf(figure) ?? Number.NaN]),
  )
}

/** `repeat` measures once more what contains the named figures. The better of two ratios counts. */
export async function judge(
  folder: string,
  machine: Machine,
  first: Ratios,
  repeat: (names: readonly string[]) => Promise<Ratios>,
): Promise<Verdict> {
  const earlier = readEarlier(folder, machine)
  let ratios = first
  let drops = findDrops(ratios, earlier)
  if (drops.length > 0) {
    const again = await repeat(drops.map(({ name }) => name))
    ratios = Object.fromEntries(Object.entries(first).map(([name, ratio]) => [name, Math.max(ratio, again[name] ?? 0)]))
    drops = findDrops(ratios, earlier)
  }
  const file = keep(folder, { machine, hasPassed: drops.length === 0, ratios })
  const uncompared = Object.keys(ratios).filter((name) => usualRatios(name, earlier).length < gateLimits.runsMin).length
  return { file, drops, uncompared }
}

export function toSentence({ name, ratio, usual, runs }: Drop): string {
  const percent = ((1 - ratio / usual) * 100).toFixed(0)
  return `${name}: the ratio ${ratio.toFixed(2)} is ${percent} % below ${usual.toFixed(2)}, the median of ${runs} earlier runs`
}

function findDrops(ratios: Ratios, earlier: readonly Stored[]): readonly Drop[] {
  return Object.entries(ratios).flatMap(([name, ratio]) => {
    const usual = usualRatios(name, earlier)
    if (usual.length < gateLimits.runsMin) return []
    const drop = { name, ratio, usual: median(usual), runs: usual.length }
    return ratio >= drop.usual * (1 - gateLimits.dropMax) ? [] : [drop]
  })
}

function usualRatios(name: string, earlier: readonly Stored[]): readonly number[] {
  return earlier.flatMap(({ ratios }) => ratios[name] ?? [])
}

/** Returns the newest runs that passed: a drop that failed must not become usual. */
function readEarlier(folder: string, { cpu, cores }: Machine): readonly Stored[] {
  const runs: Stored[] = []
  for (const name of filesOf(folder)) {
    const run = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Stored
    if (run.hasPassed && run.machine.cpu === cpu && run.machine.cores === cores) runs.push(run)
    if (runs.length === gateLimits.runsMax) break
  }
  return runs
}

/** Returns names of files, the newest first. */
function filesOf(folder: string): readonly string[] {
  mkdirSync(folder, { recursive: true })
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .toSorted()
    .toReversed()
}

function keep(folder: string, run: Stored): string {
  const file = join(folder, `${run.machine.date.replaceAll(':', '')}-${run.machine.commit}.json`)
  writeFileSync(`${file}.part`, `${JSON.stringify(run, null, 2)}\n`)
  renameSync(`${file}.part`, file)
  for (const old of filesOf(folder).slice(gateLimits.filesMax)) rmSync(join(folder, old))
  return file
}
