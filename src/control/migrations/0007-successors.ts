/** Finds the key that replaced another one, as every list of keys shows it. */

export const SUCCESSORS_SQL = `
create index keys_rotated_from on touchdown.keys (rotated_from) where rotated_from is not null;
`;
