/**
 * `npm run torture`: faults of every kind against a real Inlet, in rounds, until the time is up. Exit code 1 on a finding.
 *
 * Runs with `--single-threaded`: Node can hang at its exit while V8 compiles in the background (https://github.com/nodejs/node/issues/54918).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine } from './command-line.ts'
import { type Options, readOptions, usage } from './options.ts'
import { drawPlan, type Plan } from './plan.ts'
import { Progress } from './progress.ts'
import { Random, seedOfRound } from './random.ts'
import { describeRound, describeRun, type Reported } from './report.ts'
import { type RoundState, runRound } from './round.ts'

/** Length of the part of a round in which faults begin. */
const faultsMs = 20_000

// Not by an exit code alone: then Node can loop for ever while it closes its handles.
process.exit(await runCommandLine({ usage, readOptions, run: main }))

async function main(options: Options): Promise<number> {
  const rounds = await runRounds(options)
  for (const line of describeRun(options.seed, rounds)) console.log(line)
  return rounds.some(({ findings }) => findings.length > 0) ? 1 : 0
}

async function runRounds({ minutes, seed, kinds, round: only, keep }: Options): Promise<readonly Reported[]> {
  const state: RoundState = { phase: 'starting', rig: undefined, active: new Set(), faults: new Map() }
  const progress = new Progress(process.stdout, state)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void interrupt(state, progress))
  progress.print(`seed ${seed}; this run again: npm run torture -- --minutes ${minutes} --seed ${seed}`)
  const done: Reported[] = []
  const deadline = performance.now() + minutes * 60_000
  try {
    for (let round = only ?? 1; done.length === 0 || (only === undefined && performance.now() < deadline); round += 1) {
      progress.round = round
      const plan = drawPlan({ seed, round, random: new Random(seedOfRound(seed, round)), kinds, faultsMs })
      const reported = await runAndKeep(plan, state, keep)
      progress.acknowledgedBefore += reported.acknowledgedRecords
      for (const line of describeRound(reported)) progress.print(line)
      done.push(reported)
    }
  } finally {
    progress.stop()
  }
  return done
}

/** Ends the processes of the round, which may be stopped, and exits. */
async function interrupt({ rig }: RoundState, progress: Progress): Promise<void> {
  await rig?.processes.close()
  progress.stop()
  if (rig !== undefined) console.log(`interrupted; the directory of this round: ${rig.directory}`)
  process.exit(130)
}

/** Runs a round in a directory of its own, which stays if there is a finding. */
async function runAndKeep(plan: Plan, state: RoundState, keep: boolean): Promise<Reported> {
  const directory = mkdtempSync(join(tmpdir(), `inlet-torture-${plan.seed}-${plan.round}-`))
  try {
    const result = await runRound(plan, directory, state)
    const isKept = keep || result.findings.length > 0
    if (!isKept) rmSync(directory, { recursive: true, force: true })
    return { ...result, kept: isKept ? directory : undefined }
  } catch (error) {
    console.error(`round ${plan.round} of seed ${plan.seed} could not be finished; its directory: ${directory}`)
    throw error
  }
}
