/**
 * Decides what follows an attempt at a segment, or at a unit of a job, that did not succeed. A pure function of how it ended and of what came before.
 *
 * Owns: which failures are counted, which delays follow, and when it is enough. Does not own: finding out how an attempt ended (examination.ts),
 * or doing what follows (carry-out.ts).
 * Law: a fault of the node parks nothing, however long it lasts. Only failures that neither the operating system nor the configuration explains,
 * and crashes, are counted, and each only after a conversion of something else that succeeded. A required view that fails holds the segment, and
 * never parks it.
 */
import { backoffStepMs } from '#lib/retry.ts'
import { deliveryLimits } from '../segments/limits.ts'
import type { RequiredViewFailed } from './build/failures.ts'
import { conversionLimits } from './limits.ts'

/** How an attempt ended without a result. What follows depends on nothing else about it. */
export type Outcome =
  /** Somebody removed or renamed the segment. */
  | { readonly kind: 'gone' }
  /** The segment was damaged, and now has only the frames that are intact. */
  | { readonly kind: 'salvaged' }
  /** The segment was damaged, and no frame of it is intact. */
  | { readonly kind: 'quarantined' }
  /** The segment has a format version that this program cannot read. */
  | { readonly kind: 'unreadable'; readonly error: unknown }
  /** Another conversion gets the slot, or the views changed meanwhile. */
  | { readonly kind: 'superseded' }
  /** A process ended while it worked on views. It is known which failed, or that each has to be built apart. */
  | { readonly kind: 'unfinished' }
  /** The node or its configuration is the cause. */
  | { readonly kind: 'fault'; readonly error: unknown }
  /** The node converts something else, so the content is the cause. */
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The same, if the process died over the records. */
  | { readonly kind: 'crashed'; readonly error: unknown }
  /** The same, if a required view is the cause. */
  | {
      readonly kind: 'view failed'
      readonly error: RequiredViewFailed
      readonly tookMs: number
      /** Whether every earlier segment of its log is committed or parked. */
      readonly isFirst: boolean
    }

/** After the longer of `msMin` and a random part of `stepMs`. */
export type Pause = { readonly msMin: number; readonly stepMs: number }

export type Verdict =
  /** Go on at once with what is left to build. */
  | { readonly kind: 'continue' }
  /** Start again from the beginning. */
  | { readonly kind: 'retry'; readonly pause: Pause }
  /** Wait for other views, and for the pause if there is one. Without one, wait for the turn. */
  | { readonly kind: 'hold'; readonly pause: Pause | undefined }
  /** Set it aside. After the pause try again, if that cannot be recorded. */
  | { readonly kind: 'park'; readonly pause: Pause }
  /** Nothing is left to do here. `again`: deliver the segment again from its footer. */
  | { readonly kind: 'end'; readonly as: 'gone' | 'quarantined' | 'again'; readonly pause: Pause }

/** Attempts since the beginning, or since a required view failed last. */
export type History = {
  readonly failures: number
  readonly crashes: number
  readonly pauses: number
  /** How often a required view has failed. */
  readonly holds: number
}

export const noHistory: History = { failures: 0, crashes: 0, pauses: 0, holds: 0 }

/** How many failures and crashes are enough. */
export type Tolerance = { readonly failuresMax: number; readonly crashesMax: number }

const { retryDelayMsMin, retryDelayMsMax } = deliveryLimits
const { contentFailuresMax, crashesMax, crashDelayMsMin, heldRestFactor, heldRestMsMax } = conversionLimits

export const segmentTolerance: Tolerance = { failuresMax: contentFailuresMax, crashesMax }
/** Control repeats units. A process can also die for another reason of the node, so it must die twice. */
export const unitTolerance: Tolerance = { failuresMax: 1, crashesMax: 2 }

const noPause: Pause = { msMin: 0, stepMs: 0 }

type Judgement = { readonly verdict: Verdict; readonly history: History }

export function judge(outcome: Outcome, history: History, tolerance: Tolerance = segmentTolerance): Judgement {
  const pause = pauseAfter(history.pauses, retryDelayMsMin)
  const paused = { ...history, pauses: history.pauses + 1 }
  switch (outcome.kind) {
    case 'gone':
    case 'quarantined':
      return { verdict: { kind: 'end', as: outcome.kind, pause: noPause }, history }
    case 'salvaged':
      return { verdict: { kind: 'end', as: 'again', pause }, history: paused }
    case 'unreadable':
      return { verdict: { kind: 'park', pause }, history: paused }
    case 'superseded':
      return { verdict: { kind: 'retry', pause: noPause }, history }
    case 'unfinished':
      return { verdict: { kind: 'continue' }, history }
    case 'fault':
      return { verdict: { kind: 'retry', pause }, history: paused }
    case 'failed': {
      const failures = history.failures + 1
      return { verdict: { kind: failures >= tolerance.failuresMax ? 'park' : 'retry', pause }, history: { ...paused, failures } }
    }
    case 'crashed': {
      const crashes = history.crashes + 1
      const isEnough = crashes >= tolerance.crashesMax
      const crashPause = isEnough ? pause : pauseAfter(history.crashes, crashDelayMsMin)
      return { verdict: { kind: isEnough ? 'park' : 'retry', pause: crashPause }, history: { ...history, crashes } }
    }
    case 'view failed': {
      // A view that fails by its timeout would otherwise keep a processor busy.
      const msMin = Math.min(heldRestMsMax, outcome.tookMs * heldRestFactor)
      const held = outcome.isFirst ? { ...pauseAfter(history.holds, retryDelayMsMin), msMin } : undefined
      return {
        verdict: { kind: 'hold', pause: held },
        history: { ...noHistory, holds: history.holds + (outcome.isFirst ? 1 : 0) },
      }
    }
  }
}

function pauseAfter(attempts: number, delayMsMin: number): Pause {
  return { msMin: 0, stepMs: backoffStepMs({ delayMsMin, delayMsMax: retryDelayMsMax }, attempts) }
}
