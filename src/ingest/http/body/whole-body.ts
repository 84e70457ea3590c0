import type { BodyRecords } from './body-records.ts'

/** A body in which there are no records to find: they are made of it once it is complete. */
export class WholeBody implements BodyRecords {
  readonly layout = 'single'
  readonly records = 1

  push(): undefined {
    return undefined
  }

  end(): undefined {
    return undefined
  }
}
