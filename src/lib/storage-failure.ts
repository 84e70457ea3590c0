/** A library that writes files by itself failed to: a broken or full disk, a missing directory, too many open files. */
export class StorageFailure extends Error {
  override readonly name = 'StorageFailure'
}
