import { existsSync } from 'node:fs'
import type { Config } from '#config/config.ts'
import { UserError } from '#lib/user-error.ts'

/** Throws a UserError if a restore into the data directory was begun and not ended: part of the files are missing. */
export function assertRestored({ restoring, data }: Config['paths']): void {
  if (!existsSync(restoring)) return
  throw new UserError(`a restore into ${data} was interrupted: repeat inlet restore, which begins again`)
}
