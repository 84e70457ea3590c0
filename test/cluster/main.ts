/**
 * `npm run test:cluster`: a whole cluster on this machine, with faults of every kind, in rounds. Exit code 1 on a finding.
 *
 * Runs itself a second time, in network namespaces of its own. Where they are not permitted it uses loopback addresses, and says so.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quantile } from '../../tools/simulate-scale/tables.ts'
import { runCommandLine } from '../torture/command-line.ts'
import { count, seconds } from '../torture/text.ts'
import { faultKinds } from './faults/fault.ts'
import { enteredNetwork, keepDirectory, namespaceProblem, runInside } from './network/enter.ts'
import { type Options, readOptions, usage } from './options.ts'
import { type RoundResult, runRound } from './round.ts'

process.exit(await runCommandLine({ usage, readOptions, run: main }))

async function main(options: Options): Promise<number> {
  if (enteredNetwork() !== undefined) return await runRounds(options)
  if (options.network === 'loopback') return await runInside('loopback')
  const problem = namespaceProblem()
  if (problem === undefined) return await runInside('namespaces')
  console.log(`network namespaces are not permitted (${problem}): the hosts are loopback addresses, and nothing is cut`)
  return await runInside('loopback')
}

async function runRounds({ rounds, seed, kinds, pairs, controlDownMs, keep }: Options): Promise<number> {
  const network = enteredNetwork() ?? 'loopback'
  const only = kinds.length < faultKinds.length ? ` --only ${kinds.join()}` : ''
  console.log(
    `seed ${seed}, network: ${network}; this run again: npm run test:cluster -- --rounds ${rounds} --seed ${seed} --pairs ${pairs}${only}`,
  )
  let findings = 0
  for (let round = 1; round <= rounds; round += 1) {
    const directory = mkdtempSync(join(tmpdir(), 'round-'))
    const print = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)
    try {
      const result = await runRound({ directory, seed, round, kinds, pairs, controlDownMs, network, print })
      for (const line of describe(result)) print(line)
      findings += result.findings.length
      if (keep || result.findings.length > 0) print(`  kept: ${keepDirectory(directory, `${seed}-${round}`)}`)
    } catch (error) {
      print(`round ${round} could not be finished; kept: ${keepDirectory(directory, `${seed}-${round}`)}`)
      throw error
    }
  }
  console.log(findings === 0 ? 'cluster: no finding' : `cluster: ${findings} findings`)
  return findings === 0 ? 0 : 1
}

function describe({ findings, acknowledgedRecords, committedRecords, quietMs, steps, spread }: RoundResult): readonly string[] {
  const slowest = (of: (step: RoundResult['steps'][number]) => number) => seconds(Math.max(0, ...steps.map(of)))
  return [
    `  ${count(acknowledgedRecords)} records acknowledged, ${count(committedRecords)} committed, all delivered after ${seconds(quietMs)}`,
    `  ${steps.length} steps; the truth was told after ${slowest(({ toldAfterMs }) => toldAfterMs)}, all was active after ${slowest(({ activeAfterMs }) => activeAfterMs)} at most`,
    `  configuration: ${describeTimes(spread.quiet)} without a fault, ${describeTimes(spread.underFault)} under one`,
    ...findings.map(({ law, text }) => `  FINDING ${law}: ${text}`),
  ]
}

function describeTimes(times: readonly number[]): string {
  if (times.length === 0) return 'no change'
  return `${times.length} changes applied after ${seconds(quantile(times, 0.5))} (p50), ${seconds(Math.max(...times))} at most`
}
