import { type History, type Plan, runHistory } from './history.ts'

const runsMax = 200

/** Returns as few faults as it finds, in a bounded number of histories, that break the same law. */
export async function shrink(plan: Plan, { faults, broken }: History): Promise<readonly string[]> {
  const law = lawOf(broken)
  let runs = 0
  const breaks = async (kept: readonly string[]): Promise<boolean> => {
    runs += 1
    return lawOf((await runHistory({ ...plan, kept })).broken) === law
  }
  let kept = faults
  for (let parts = 2; runs < runsMax && kept.length > 0; ) {
    const size = Math.ceil(kept.length / parts)
    const smaller = await firstThatBreaks(kept, size, () => runs < runsMax, breaks)
    if (smaller !== undefined) {
      kept = smaller
      parts = Math.max(2, parts - 1)
    } else if (size <= 1) break
    else parts *= 2
  }
  return kept
}

/** Leaves out `size` faults at a time. */
async function firstThatBreaks(
  faults: readonly string[],
  size: number,
  mayGoOn: () => boolean,
  breaks: (kept: readonly string[]) => Promise<boolean>,
): Promise<readonly string[] | undefined> {
  for (let from = 0; from < faults.length && mayGoOn(); from += size) {
    const kept = faults.toSpliced(from, size)
    if (await breaks(kept)) return kept
  }
  return undefined
}

/** The first law that broke, without names and numbers. */
function lawOf([text]: readonly string[]): string | undefined {
  return text?.replaceAll(/[\w./-]*\d[\w./-]*/g, '#')
}
