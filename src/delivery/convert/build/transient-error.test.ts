import { describe, expect, test } from 'vitest'
import { systemFiles } from '#lib/files.ts'
import { StorageFailure } from '#lib/storage-failure.ts'
import { isTransient, NotConfiguredError } from './transient-error.ts'

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: failed`), { code })
}

describe('isTransient', () => {
  test.each(['EIO', 'EROFS', 'ENOENT', 'ENOSPC', 'EDQUOT', 'EMFILE', 'EACCES'])('%s, also as a cause', (code) => {
    expect(isTransient(systemError(code))).toBe(true)
    expect(isTransient(new Error('the build failed', { cause: systemError(code) }))).toBe(true)
  })

  test('a missing file, as the system reports it', async () => {
    const error = await systemFiles.open('/no/such/file', 'read').catch((failure: unknown) => failure)
    expect(isTransient(error)).toBe(true)
  })

  test('a missing configuration', () => {
    expect(isTransient(new NotConfiguredError('no destination'))).toBe(true)
  })

  test('not an error of Node itself, or of the work', () => {
    expect(isTransient(systemError('ERR_INVALID_ARG_TYPE'))).toBe(false)
    expect(isTransient(new Error('IO, it says, but not as DuckDB does'))).toBe(false)
  })

  test('a folder that DuckDB cannot write to', () => {
    expect(isTransient(new StorageFailure('IO Error: Cannot open file'))).toBe(true)
  })
})
