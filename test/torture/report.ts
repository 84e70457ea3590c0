/** The report at the end of a run. */
import type { Finding } from './law.ts'
import { describePlan, type FaultKind } from './plan.ts'
import type { RoundResult } from './round.ts'
import { count, listSome, seconds } from './text.ts'

/** A round, and where its directory was kept. */
export type Reported = RoundResult & { readonly kept: string | undefined }

/** Lines that are printed as soon as a round is done. */
export function describeRound({ plan, findings, acknowledgedRecords, faults, quietMs }: Reported): readonly string[] {
  const verdict = findings.length === 0 ? 'no finding' : `${findings.length} findings`
  const number = [...faults.values()].reduce((sum, each) => sum + each, 0)
  return [
    `round ${plan.round}: ${verdict}; ${number} faults, ${count(acknowledgedRecords)} records acknowledged, quiet after ${seconds(quietMs)}`,
    ...findings.map(describeFinding),
  ]
}

export function describeRun(seed: number, rounds: readonly Reported[]): readonly string[] {
  const sum = (of: (round: Reported) => number) => count(rounds.reduce((total, round) => total + of(round), 0))
  const lost = rounds.flatMap(({ lostToDamage }) => lostToDamage)
  const lines = [
    `seed                      ${seed}`,
    `rounds                    ${rounds.length}`,
    `records acknowledged      ${sum(({ acknowledgedRecords }) => acknowledgedRecords)}`,
    `records committed         ${sum(({ committedRecords }) => committedRecords)} (some were never acknowledged, some were sent again)`,
    `dead letters among them   ${sum(({ deadLetters }) => deadLetters)}`,
    `listed with a reason      ${sum(({ listedRecords }) => listedRecords)}`,
    `lost to injected damage   ${count(lost.length)}${lost.length === 0 ? '' : `: ${listSome(lost)}`}`,
    `failed starts on a broken disk  ${sum(({ failedStarts }) => failedStarts)}`,
    'faults, and the slowest recovery after one:',
    ...faultLines(rounds),
  ]
  for (const round of rounds.filter(({ findings }) => findings.length > 0)) lines.push('', ...findingLines(seed, round))
  const findings = rounds.flatMap((round) => round.findings)
  lines.push('', findings.length === 0 ? 'torture: no finding' : `torture: ${findings.length} findings`)
  return lines
}

function faultLines(rounds: readonly Reported[]): readonly string[] {
  const kinds = new Set(rounds.flatMap(({ faults }) => [...faults.keys()]))
  return [...kinds].toSorted().map((kind) => {
    const number = rounds.reduce((total, { faults }) => total + (faults.get(kind) ?? 0), 0)
    return `  ${kind.padEnd(10)} ${String(number).padStart(4)}  ${slowest(kind, rounds)}`
  })
}

function slowest(kind: FaultKind, rounds: readonly Reported[]): string {
  const times = rounds.map(({ slowestRecovery }) => slowestRecovery.get(kind) ?? 0)
  return seconds(Math.max(...times))
}

function findingLines(seed: number, { plan, findings, kept }: Reported): readonly string[] {
  return [
    `FINDINGS in round ${plan.round}; again: npm run torture -- --seed ${seed} --round ${plan.round}`,
    ...findings.map(describeFinding),
    `  directory: ${kept ?? 'not kept'} (log.ndjson, events.log, data/)`,
    '  plan:',
    ...describePlan(plan).map((line) => `    ${line}`),
  ]
}

function describeFinding({ law, text }: Finding): string {
  return `  ${law}: ${text}`
}
