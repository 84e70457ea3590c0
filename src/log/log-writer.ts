/** When an fdatasync began and ended, on the monotonic clock. */
export type Sync = { readonly startedAtMs: number; readonly endedAtMs: number }

/** Where a frame is durable. `sync` made it so; a stand-in may leave it out. */
export type Appended = { readonly seq: number; readonly sync?: Sync | undefined }
