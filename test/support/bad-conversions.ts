import { join } from 'node:path'
import { type ConversionPool, createConversionPool } from '#delivery/convert/conversion-pool.ts'
import { type Clock, systemClock } from '#lib/clock.ts'

const program = join(import.meta.dirname, 'bad-worker.ts')

/**
 * Returns a pool of the production code in which views misbehave as their names say: `busy` holds its process for ever, `slow…` once it is compiled, `crash` ends it,
 * `greedy` ends it as a limit of memory does, and `outside` as the kernel does if the machine has no memory. An endpoint with a view `poison` or `famine` ends it before any view, and a unit of a job with `fragile` once.
 */
export function badConversionPool(clock: Clock = systemClock): ConversionPool {
  return createConversionPool({ clock, commandLine: ([node = '']) => [node, program] })
}
