/** A body that is not an ExportLogsServiceRequest. The message says where and why. */
export class OtlpError extends Error {
  override readonly name = 'OtlpError'
}

/** Values in values, deeper than which a request is refused. */
export const VALUE_DEPTH_MAX = 64

export function tooDeep(): OtlpError {
  return new OtlpError(`a value is nested deeper than ${VALUE_DEPTH_MAX} levels`)
}
