import { errorCode } from '#lib/files.ts'
import { UserError } from '#lib/user-error.ts'

/** Advice on errors of the file system, by code. */
const remedies: Readonly<Record<string, string>> = {
  EACCES: 'give this user the right to write there, or set INLET_DATA_DIR',
  EPERM: 'give this user the right to write there, or set INLET_DATA_DIR',
  EROFS: 'mount the file system writable, or set INLET_DATA_DIR',
  ENOSPC: 'make room on the disk',
  EDQUOT: 'make room on the disk, or raise the quota',
  ENOTDIR: 'a directory on the way is a file; move it away, or set INLET_DATA_DIR',
  EISDIR: 'it is a directory, but has to be a file; move it away',
  EIO: 'the disk fails; check it, or set INLET_DATA_DIR to another one',
  EMFILE: 'raise the limit of open files (ulimit -n)',
}

const directoryRemedies: typeof remedies = {
  EEXIST: 'it is a file, but has to be a directory; move it away',
  ENOENT: 'nothing can be created there; set INLET_DATA_DIR',
}

/** Returns one sentence about what prevents a start and what to do, or undefined if the error is unexpected. */
export function startProblem(error: unknown): string | undefined {
  if (error instanceof UserError) return error.message
  const code = errorCode(error)
  if (!(error instanceof Error) || code === undefined) return undefined
  if ('setting' in error || ('syscall' in error && (error.syscall === 'listen' || error.syscall === 'bind')))
    return listenProblem(code, error)
  const isNewDirectory = 'syscall' in error && error.syscall === 'mkdir'
  const remedy = (isNewDirectory ? directoryRemedies[code] : undefined) ?? remedies[code]
  if (remedy === undefined) return undefined
  const path = 'path' in error && typeof error.path === 'string' ? error.path : 'a file of this installation'
  return `${path} cannot be used (${code}): ${remedy}`
}

function listenProblem(code: string, error: object): string {
  const { address, port, hostname, setting } = { address: '', port: '', hostname: '', setting: 'INLET_CONTROL_LISTEN', ...error }
  const where = port === '' ? address || hostname : `${address}:${port}`
  if (code === 'EADDRINUSE') return `${where} is in use by another process: stop it, or listen elsewhere with ${setting}`
  if (code === 'EACCES') return `this user may not listen on ${where}: use a port above 1023 with ${setting}`
  return `cannot listen on ${where} (${code}): set another address with ${setting}`
}
