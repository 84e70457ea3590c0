import { type History, judge, noHistory, type Outcome, type Tolerance, type Verdict } from './policy.ts'

/** How one attempt ended. */
export type Attempted<Result> = { readonly kind: 'done'; readonly result: Result } | Outcome

/** Work that is attempted until the policy says that it is enough. */
export interface Work<Result> {
  readonly tolerance?: Tolerance
  /** Makes one attempt. Throws only the reason of an abort. */
  attempt(): Promise<Attempted<Result>>
  /** Does what follows an attempt, waiting included. Throws if there is to be no further attempt. */
  carryOut(verdict: Verdict, outcome: Outcome): Promise<void>
  /** Called once, however the work ended. */
  end?(): Promise<void>
}

/** Repeats attempts. Every conversion is repeated here, and nowhere else. Throws what the work throws. */
export async function repeatAttempts<Result>(work: Work<Result>): Promise<Result> {
  let history: History = noHistory
  try {
    for (;;) {
      const ended = await work.attempt()
      if (ended.kind === 'done') return ended.result
      const judged = judge(ended, history, work.tolerance)
      history = judged.history
      await work.carryOut(judged.verdict, ended)
    }
  } finally {
    await work.end?.()
  }
}
