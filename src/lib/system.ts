import { type Clock, systemClock } from './clock.ts'
import { type Files, systemFiles } from './files.ts'
import { type Random, systemRandom } from './random.ts'

/** All that a part may ask of the machine: a simulation gives others. */
export type System = { readonly files: Files; readonly clock: Clock; readonly random: Random }

/** The machine itself. Only composition roots and commands name it. */
export const system: System = { files: systemFiles, clock: systemClock, random: systemRandom }
