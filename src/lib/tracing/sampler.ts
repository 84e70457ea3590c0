import type { Random } from '../random.ts'
import type { Parent } from './trace-context.ts'

/** The values of OTEL_TRACES_SAMPLER. */
export const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type Sampler = (typeof samplers)[number]

/** Returns a function that decides whether a request is traced, given the span of its sender. */
export function createSampler(
  sampler: Sampler,
  ratio: number,
  random: Pick<Random, 'fraction'>,
): (parent: Parent | undefined) => boolean {
  const followsParent = sampler.startsWith('parentbased_')
  const share = sampler.endsWith('always_on') ? 1 : sampler.endsWith('always_off') ? 0 : ratio
  // The last 56 bits of an id are random: all services that trace this share choose the same traces.
  const threshold = (1 - share) * 2 ** 56
  return (parent) => {
    if (parent === undefined) return share === 1 || random.fraction() < share
    return followsParent ? parent.isSampled : Number.parseInt(parent.traceId.slice(-14), 16) >= threshold
  }
}
