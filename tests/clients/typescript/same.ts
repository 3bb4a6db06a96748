// What the test of the methods' types is written with: it compiles only if both types are the same.
import type { Client } from "konstruct-client";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
export function same<A, B>(_: Same<A, B>): void {}

export type Method<R extends keyof Client, M extends keyof Client[R]> = Extract<Client[R][M], (...args: any) => any>;
