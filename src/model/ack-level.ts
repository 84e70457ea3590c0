/** How safe records are when they are acknowledged. */
export const ackLevels = ['disk', 'copied', 'committed'] as const
export type AckLevel = (typeof ackLevels)[number]

/** The header by which a sender asks for a level. The user property of MQTT has the same name. */
export const ackLevelName = 'inlet-ack'
